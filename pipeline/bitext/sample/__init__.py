"""The embedded sample bitext: Czech-English sentences written for this project, from readable tables."""

from pipeline.bitext.sample.corpus import SOURCES, write_sample, write_sample_test
from pipeline.bitext.sample.generator import SamplePair, generate
from pipeline.bitext.sample.synonyms import SynonymPair, synonym_pairs

__all__ = [
    "SOURCES",
    "SamplePair",
    "SynonymPair",
    "generate",
    "synonym_pairs",
    "write_sample",
    "write_sample_test",
]
