"""Paraphrase pairs from the real data of PARAFORGE_DATA, and a plain Pearson score on its STS sets, for
benchmarks."""

from __future__ import annotations

import gzip
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import typer

from pipeline.embeddings.model import SentenceModel
from pipeline.embeddings.sources import PairBlock, read_pair_file

SOURCES = ("captions", "bible", "news", "ppdb")
BIBLE_PAIRS_A_VERSE = 5
DROPPED_SHARE = 0.3
DROPPED_SENTENCES = 150_000
_BLOCK = 20_000


def data_directory() -> Path:
    """PARAFORGE_DATA, or a message and the end."""
    directory = os.environ.get("PARAFORGE_DATA")
    if not directory or not Path(directory).is_dir():
        raise typer.BadParameter("set the environment variable PARAFORGE_DATA to the directory of real data")
    return Path(directory)


def paraphrases(source: str) -> Iterator[PairBlock]:
    """All pairs of one source.

    captions: any two of an image's five captions, images whose English stands in an STS or SICK set left out.
    bible: up to five pairs of versions a verse. news: any two of two human references and eight systems.
        ppdb: lexical pairs. dropped: no paraphrases but two copies of a novel's sentence, each without three
        tenths of its words.
    """
    data = data_directory()
    if source == "ppdb":
        yield from read_pair_file(
            data / "ppdb" / "ppdb-1.0-xxxl-lexical.extended.synonyms.uniquepairs.gz", "tsv"
        )
        return
    makers = {"captions": _captions, "bible": _bible, "news": _news, "dropped": _dropped}
    texts = makers[source](data)
    generator = np.random.default_rng(1)
    pairs: list[tuple[str, str]] = []
    for versions in texts:
        found = [(first, second) for first, second in itertools.combinations(versions, 2) if first and second]
        if source == "bible" and len(found) > BIBLE_PAIRS_A_VERSE:
            chosen = generator.choice(len(found), BIBLE_PAIRS_A_VERSE, replace=False)
            found = [found[number] for number in sorted(chosen)]
        pairs += found
        if len(pairs) >= _BLOCK:
            yield _block(pairs)
            pairs = []
    if pairs:
        yield _block(pairs)


def _block(pairs: list[tuple[str, str]]) -> PairBlock:
    return PairBlock(pa.array([left for left, _ in pairs]), pa.array([right for _, right in pairs]))


def _lines(path: Path) -> list[list[str]]:
    """Fields of a TSV; lines end at line feeds alone."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line.split("\t") for line in data.decode("utf-8").split("\n") if line.strip()]


def _captions(data: Path) -> Iterator[list[str]]:
    leaked = {int(row[0]) for row in _lines(data / "leakage" / "multi30k_train.contaminated_rows.tsv")[1:]}
    for number, row in enumerate(_lines(data / "captions" / "train.en5.tsv.gz")):
        if number not in leaked:
            yield row


def _bible(data: Path) -> Iterator[list[str]]:
    for row in _lines(data / "bitext" / "bkr_cs_x_en7.tsv.gz")[1:]:
        yield [text.strip() for text in row[2:]]


def _news(data: Path) -> Iterator[list[str]]:
    for row in _lines(data / "mt_outputs" / "newstest2021.cs-en.tsv.gz")[1:]:
        yield row[1:]


def _dropped(data: Path) -> Iterator[list[str]]:
    generator = np.random.default_rng(2)
    rows = _lines(data / "books" / "sentences.tsv.gz")
    chosen = generator.choice(len(rows), DROPPED_SENTENCES, replace=False)
    for number in np.sort(chosen).tolist():
        words = rows[number][-1].split()
        if len(words) >= 6:
            kept = generator.random((2, len(words))) >= DROPPED_SHARE
            yield [" ".join(word for word, keep in zip(words, row, strict=True) if keep) for row in kept]


ScoredPairs = tuple[list[float], list[str], list[str]]


def sts_sets() -> dict[str, ScoredPairs]:
    """Name -> gold scores, first and second sentences."""
    directory = data_directory() / "sts"
    layouts = {path.stem: (path, 0, 0, 1, 2) for path in sorted(directory.glob("201[2347].*.tsv"))}
    layouts["stsb-dev"] = (directory / "stsb-dev.tsv", 0, 4, 5, 6)
    layouts["sick-trial"] = (directory / "SICK_trial.txt", 1, 3, 1, 2)
    sets = {}
    for name, (path, skip, gold, first, second) in layouts.items():
        rows = _lines(path)[skip:]
        sets[name] = ([float(r[gold]) for r in rows], [r[first] for r in rows], [r[second] for r in rows])
    return sets


def pearson(model: SentenceModel, scored: ScoredPairs) -> float:
    """Pearson's r x 100 between cosine and gold."""
    gold, first, second = scored
    return float(np.corrcoef(model.similarity(first, second), gold)[0, 1]) * 100


def sts_table(model: SentenceModel, sets: dict[str, ScoredPairs]) -> dict[str, float]:
    """Unweighted mean over the sets of a year, and the single sets."""
    scores = {name: pearson(model, scored) for name, scored in sets.items()}
    groups: dict[str, list[float]] = {}
    for name, score in scores.items():
        groups.setdefault(name.partition(".")[0], []).append(score)
    return {name: float(np.mean(values)) for name, values in groups.items()}
