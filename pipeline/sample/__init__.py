"""The embedded sample bitext: Czech-English sentences written for this project, from readable tables."""

from paraforge.sample.corpus import SOURCES, write_sample, write_sample_test
from paraforge.sample.generator import SamplePair, generate
from paraforge.sample.synonyms import SynonymPair, synonym_pairs

__all__ = [
    "SOURCES",
    "SamplePair",
    "SynonymPair",
    "generate",
    "synonym_pairs",
    "write_sample",
    "write_sample_test",
]
