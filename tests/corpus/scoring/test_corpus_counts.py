"""Counts of a corpus: exact, the same for any shards, in bounded memory."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardView
from paraforge.base.text.tokens import tokenize
from paraforge.corpus.columns import schema_of
from paraforge.corpus.scoring import corpus_counts
from paraforge.corpus.scoring.corpus_counts import (
    CorpusCounts,
    count_corpus,
    count_shard,
    counted_shards,
    put_together,
)
from tests.corpus.selection.corpora import write_shards

SCHEMA = schema_of(["source", "reference", "translation", "rejected", "failed"])
TEXT = st.sampled_from(["The cat sat.", "the DOG, 2 dogs", "", "¿Qué?", "-- 5 --", "a b a"])
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["news", "bible", None]),
        TEXT | st.none(),
        TEXT | st.none(),
        st.sampled_from([None, None, "duplicate"]),
        st.sampled_from([None, None, "error"]),
    )
)
Row = tuple[str | None, str | None, str | None, str | None, str | None]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def counts_of(rows: list[Row], size: int = 3) -> CorpusCounts:
    return put_together(count_shard(table(rows[k : k + size])) for k in range(0, len(rows), size))


def usable(rows: list[Row]) -> list[Row]:
    return [row for row in rows if None not in row[1:3] and row[3:] == (None, None)]


@given(ROWS)
def test_counted_words_come_from_scored_references(rows: list[Row]) -> None:
    expected = Counter(
        token
        for _, reference, *_ in usable(rows)
        for token in tokenize(reference or "")
        if any(map(str.isalpha, token))
    )
    counts = counts_of(rows)
    assert dict(zip(counts.words.to_pylist(), counts.counts.tolist(), strict=True)) == expected
    assert counts.words.to_pylist() == sorted(expected, key=str.encode)


@given(ROWS, st.integers(1, 4))
def test_counts_do_not_depend_on_shards(rows: list[Row], size: int) -> None:
    first, second = counts_of(rows, size).table(), counts_of(rows, len(rows) + 1).table()
    assert first.equals(second, check_metadata=True)
    again = CorpusCounts.of_table(first)
    assert again.table().equals(first, check_metadata=True)
    assert again.lengths == counts_of(rows).lengths


def lengths(ratios: list[float], source: str | None = "s") -> tuple[float, float]:
    rows = [(source, "x" * 999, "y" * (round(1000 * math.exp(ratio)) - 1), None, None) for ratio in ratios]
    return counts_of(rows, 1000).usual_length(source)


def test_the_usual_length_is_the_median_and_ignores_failures() -> None:
    rng = np.random.default_rng(1)
    ratios = rng.normal(-0.3, 0.1, 5000).tolist()
    usual, deviation = lengths(ratios)
    assert usual == pytest.approx(-0.3, abs=0.02)
    assert deviation == pytest.approx(0.1, abs=0.01)
    # A twentieth of failures would make it 0.6.
    failed = lengths([*ratios, *[2.5] * 250])
    assert failed == pytest.approx((usual, deviation), abs=0.02)


def test_few_pairs_barely_move_the_usual_length() -> None:
    assert lengths([]) == (0, 0.2)
    usual, deviation = lengths([1.0])
    assert usual == pytest.approx(1 / 101, abs=1e-3)
    assert deviation == pytest.approx(0.2, abs=0.01)
    for farthest in (-5, 5):  # more is counted as this
        assert lengths([1.4 * farthest])[0] == pytest.approx(farthest / 101, abs=1e-6)
    assert lengths([0.008] * 1_000)[0] == pytest.approx(0.0091, abs=1e-4)  # 0.01 is the nearest bin
    assert lengths([0.0] * 10_000)[1] == pytest.approx(0.02, abs=0.001)  # never 0


def test_each_source_has_its_own_usual_length_and_unknown_sources_the_default() -> None:
    rows: list[Row] = [("a", "x" * 9, "y" * 19, None, None), (None, "x" * 9, "y" * 4, None, None)]
    counts = counts_of(rows * 500)
    assert counts.usual_length("a")[0] > 0.5
    assert counts.usual_length(None)[0] < -0.5
    assert counts.usual_length("other") == (0, 0.2)


def test_the_rarest_words_are_dropped_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_counts, "MOST_WORDS", 2)
    monkeypatch.setattr(corpus_counts, "_PENDING", 0)
    rows: list[Row] = [("a", text, "x", None, None) for text in ["b c", "a b b", "c a", "c c"]]
    counts = counts_of(rows, 4)
    assert (counts.words.to_pylist(), counts.counts.tolist()) == (["b", "c"], [3, 4])
    # In parts a word may lose what it had before; memory stays bounded.
    assert len(counts_of(rows, 1).words) == 2


def test_a_long_corpus_is_counted_in_evenly_spaced_shards() -> None:
    assert counted_shards([]) == []
    assert counted_shards([50_000] * 40) == list(range(40))
    assert counted_shards([50_000] * 41) == list(range(0, 41, 2))
    assert counted_shards([50_000] * 41, [1, 2]) == sorted({1, *range(0, 41, 2)})
    chosen = counted_shards([50_000] * 1028)
    assert len(chosen) * 50_000 <= corpus_counts.MOST_ROWS
    assert chosen[-1] > 1000


def test_each_source_is_counted_in_the_shard_that_has_most_of_it(tmp_path: Path) -> None:
    """Of equal shards, the first counts: shard 0 for `a` and `c`. Shard 3 has most rows of `b`."""
    rows: list[Row] = [(source, "the cat", "a cat", None, None) for source in "aacabcaabbb"]
    view = ShardView(write_shards(table(rows), tmp_path / "corpus", 3))
    assert corpus_counts._largest_shards(view, view.column_names, threads=2) == {0, 3}


@pytest.mark.parametrize("crowded", [False, True])
def test_counts_of_a_long_corpus_include_every_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crowded: bool
) -> None:
    monkeypatch.setattr(corpus_counts, "MOST_ROWS", 30)
    monkeypatch.setattr(corpus_counts, "MOST_SOURCES", 59 if crowded else 60)
    # Sources of one to nine rows, of which the first are not always scored.
    rows: list[Row] = [
        (
            f"source {n:02}",
            f"word{n} cat",
            "the cat",
            "duplicate" if row < n % 3 and row < size - 1 else None,
            None,
        )
        for n in range(60)
        for size in [1 + n % 9]
        for row in range(size)
    ]
    everything = counts_of(rows)
    assert len(everything.lengths) == 60
    corpus = write_shards(table(rows), tmp_path / "corpus", 3)
    path, key = count_corpus(corpus, Resources(work=tmp_path / "work", workers=1))
    others = Resources(work=tmp_path / "others", workers=3, in_process_rows=0)
    assert count_corpus(corpus, others)[1] == key
    counts = CorpusCounts.open(path)
    # A sample, of the whole.
    assert counts.counts.sum() < everything.counts.sum()
    assert {int(word[4:]) // 20 for word in counts.words.to_pylist() if word != "cat"} == {0, 1, 2}
    assert (set(counts.lengths) == set(everything.lengths)) is not crowded
