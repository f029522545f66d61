"""A lexicon by frequency of its words, against counting entry by entry."""

import gzip
import json
import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest

from experiments import lexicon as experiment
from experiments.pairs import FILES
from paraforge.base.shards.resources import Resources
from paraforge.embeddings.evaluation.comparing import spearman
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.products.lexicon.lookup import Lexicon
from paraforge.products.lexicon.pair_sources import open_pairs
from paraforge.products.lexicon.parameters import LexiconFilters, LexiconParameters
from tests.here import run_command
from tests.products.lexicon.corpora import write_corpus, zipf_corpus

WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PPDB and SimLex of random words, and a lexicon."""
    dice = random.Random(3)
    place = tmp_path / "data"
    listed = [dice.sample(WORDS, 2) for _ in range(150)]
    judged = [dice.sample(WORDS, 2) for _ in range(80)]
    for path, text in (
        (FILES["ppdb"], "".join(f"{first}\t{second}\n" for first, second in listed)),
        (
            str(experiment.SIMLEX),
            "word1\tword2\tSimLex999\n"
            + "".join(f"{first}\t{second}\t{dice.uniform(0, 10):.2f}\n" for first, second in judged),
        ),
    ):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        (place / path).write_bytes(gzip.compress(data, mtime=0) if path.endswith("gz") else data)
    monkeypatch.setenv("PARAFORGE_DATA", str(place))
    pairs = [(a, b) for a, b in zipf_corpus(900, words=60) if a and b]
    extract_lexicon(
        [write_corpus(tmp_path / "pairs", pairs)],
        tmp_path / "lexicon",
        LexiconParameters(filters=LexiconFilters(minimum_score=None), minimum_pairs=3),
        Resources(workers=1, work=tmp_path / "work"),
    )
    return tmp_path


def test_figures_are_those_of_counting_by_hand(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "BANDS", (1, 60, 200, 1 << 62))
    run_command("judge", data / "lexicon", data / "figures.json", app=experiment.app)
    labels = json.loads((data / "figures.json").read_text())["labels"]
    assert list(labels) == [
        "all words", "in 1 to 59 sentences", "in 60 to 199 sentences", "in 200 sentences and more",
    ]  # fmt: skip

    opened = Lexicon(data / "lexicon")
    counts = {word: opened.count_of(word) for word in WORDS if opened.count_of(word)}
    with gzip.open(data / "data" / FILES["ppdb"], "rt") as file:
        listed = {frozenset(line.split()) for line in file}
    listed = {pair for pair in listed if pair <= counts.keys()}
    words = {word for pair in listed for word in pair}
    entries = {(e["word"], e["paraphrase"]): e for e in opened.entries(words).to_pylist()}
    rows = (data / "data" / experiment.SIMLEX).read_text().splitlines()[1:]
    judged = [(first, second, float(score)) for first, second, score in map(str.split, rows)]
    for label, (low, high) in {"all words": (1, 9**9), "in 60 to 199 sentences": (60, 200)}.items():
        figures = labels[label]
        inside = [pair for pair in listed if low <= min(counts[word] for word in pair) < high]
        assert figures["ppdb"] == len(inside) > 5
        share = sum(tuple(pair) in entries for pair in inside) / len(inside)
        assert figures["ppdb_entries"] == pytest.approx(100 * share, abs=0.051)
        for name in ("cross_pmi", "adjusted_pmi"):
            hits = []
            for word in words:
                if low <= counts[word] < high:
                    own = [
                        (other, e[name])
                        for (first, other), e in entries.items()
                        if first == word and other in words
                    ]
                    own.sort(key=lambda one: -one[1])
                    hits += [frozenset((word, other)) in listed for other, _ in own[: experiment.BEST]]
            assert figures[f"{name}_best"] == pytest.approx(100 * sum(hits) / len(hits), abs=0.051)
            if label != "all words":
                both = [
                    (score, opened.entries([first]).to_pylist(), second)
                    for first, second, score in judged
                    if {first, second} <= counts.keys() and low <= min(counts[first], counts[second]) < high
                ]
                found = [(s, [e[name] for e in es if e["paraphrase"] == other]) for s, es, other in both]
                seen = [(s, values[0]) for s, values in found if values]
                expected = spearman(*(_numbers(column) for column in zip(*seen, strict=True)))
                assert figures[f"{name}_simlex"] == pytest.approx(expected, abs=0.051)
                assert figures["simlex"] == len(both)


def _numbers(values: tuple[float, ...]) -> npt.NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def test_pairs_of_every_source_are_a_row_each(data: Path) -> None:
    """Tables extract lexicons of these pairs: the file is an input of `paraforge lexicon extract`."""
    written = data / "ppdb.parquet"
    run_command("pairs", "ppdb", written, app=experiment.app)
    rows = pq.read_table(written).to_pylist()
    with gzip.open(data / "data" / FILES["ppdb"], "rt") as file:
        assert [f"{row['reference']}\t{row['translation']}\n" for row in rows] == list(file)
    source = open_pairs([written], LexiconFilters(minimum_score=None))
    assert source.rows == len(rows) == 150
