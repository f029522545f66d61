"""The embedded sample bitext: Czech-English sentences written for this project, from readable tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from paraforge.files import write_whole
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

SOURCES = ("sample-everyday", "sample-captions", "sample-news", "sample-software", "sample-handwritten")


def _write(path: Path, pairs: Iterable[SamplePair]) -> Path:
    content = "".join(f"{pair.cs}\t{pair.reference}\n" for pair in pairs).encode("utf-8")
    if path.is_file() and path.read_bytes() == content:
        return path  # an unchanged file keeps its time, so that nothing after it runs again
    write_whole(path, content)
    return path


def write_sample(directory: Path, pairs: int = 20000, seed: int = 1) -> list[Path]:
    """Write the training part: `<source>.tsv` (Czech, tab, English; UTF-8, newline) for each of `SOURCES`.

    Files are whole or not there; the same arguments give the same bytes, and a second call changes nothing.
    """
    by_source: dict[str, list[SamplePair]] = {source: [] for source in SOURCES}
    for pair in generate(pairs, seed):
        by_source[pair.source].append(pair)
    directory.mkdir(parents=True, exist_ok=True)
    return [_write(directory / f"{source}.tsv", by_source[source]) for source in SOURCES]


def write_sample_test(path: Path, pairs: int = 500, seed: int = 2) -> Path:
    """Write the held-out test split as one TSV. None of its Czech sentences is in a training part of any size
    and seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return _write(path, generate(pairs, seed, test=True))
