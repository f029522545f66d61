"""Lexicon counts against a slow oracle, for any pieces, blocks and workers."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.shards.scheduler import Jobs
from paraforge.base.shards.store import shard_name, write_index, write_shard
from paraforge.corpus.publication.datasets import open_held_out
from paraforge.products.lexicon import counting
from paraforge.products.lexicon.counting import COUNTER_BYTES, COUNTERS, PairCounts, count_pairs, plan_blocks
from paraforge.products.lexicon.encoding import count_increments, read_arrow
from paraforge.products.lexicon.pair_sources import open_pairs, select_pairs
from paraforge.products.lexicon.parameters import LexiconFilters, LexiconParameters
from tests.products.lexicon.corpora import Corpus, write_corpus, zipf_corpus
from tests.products.lexicon.oracle import Oracle

FILTERS = LexiconFilters()
EACH_PAIR = LexiconParameters(filters=FILTERS, minimum_pairs=1)


def count(
    corpus: Corpus, path: Path, minimum: int = 1, memory: int = 1 << 24, rows: int = 50_000
) -> PairCounts:
    source = open_pairs([write_corpus(path / "corpus", corpus, rows)], FILTERS)
    parameters = EACH_PAIR.model_copy(update={"minimum_pairs": minimum})
    return count_pairs(source, parameters, path / "work", memory, Jobs())


def as_dictionary(counts: PairCounts) -> dict[tuple[str, str], tuple[int, ...]]:
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    words = counts.vocabulary["word"].to_pylist()
    for path in counts.cells:
        for row in read_arrow(path).to_pylist():
            u, v = sorted((words[row["u"]], words[row["v"]]))
            assert (u, v) not in found
            found[u, v] = tuple(
                row[name] for name in ("pairs", "cross_count", "reference_count", "translation_count")
            )
    return found


def expected(corpus: Corpus, minimum: int) -> dict[tuple[str, str], tuple[int, ...]]:
    oracle = Oracle(corpus)
    return {
        (u, v): (number, oracle.cross[u, v], oracle.within[0][u, v], oracle.within[1][u, v])
        for (u, v), number in oracle.pairs.items()
        if u < v and number >= minimum
    }


@pytest.mark.parametrize(
    ("minimum", "memory", "rows"), [(1, 4_000, 70), (2, 1 << 24, 50_000), (10, 4_000, 70)]
)
def test_lexicon_counts_match_oracle(tmp_path: Path, minimum: int, memory: int, rows: int) -> None:
    corpus = zipf_corpus(400)
    counts = count(corpus, tmp_path, minimum, memory, rows)
    assert as_dictionary(counts) == expected(corpus, minimum)
    oracle = Oracle(corpus)
    words = counts.vocabulary.to_pylist()
    sentences = {row["word"]: row["reference"] + row["translation"] for row in words}
    assert sentences == {word: number for word, number in oracle.single.items() if number >= minimum}
    assert list(sentences) == sorted(sentences, key=lambda word: (-sentences[word], word))
    assert counts.pairs == 400
    # What the next pass does not need is gone.
    assert not [*tmp_path.glob("work/reference-*"), *tmp_path.glob("work/translation-*")]


def test_counter_overflow_is_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = zipf_corpus(400)
    monkeypatch.setattr(counting, "MOST_PAIRS", 400)
    assert count(corpus, tmp_path / "all").pairs == 400
    monkeypatch.setattr(counting, "MOST_PAIRS", 399)
    with pytest.raises(InputError, match="400 pairs; one lexicon can count 399"):
        count(corpus, tmp_path / "more")


def test_dense_and_sparse_counters_agree(tmp_path: Path) -> None:
    """With a large vocabulary most rows are sparse. The corpus above only has dense rows."""
    corpus = zipf_corpus(300, words=2_000, seed=3)
    counts = count(corpus, tmp_path, memory=1 << 20)
    kinds = {path.stem.rpartition("-")[2] for path in counts.cells}
    assert kinds == {"dense", "sparse"}
    assert as_dictionary(counts) == expected(corpus, 1)


@pytest.mark.parametrize(
    ("corpus", "cells"),
    [
        ([("a", "b")], {("a", "b"): (1, 1, 0, 0)}),  # one direction: a opposite b
        ([("a b", "a b")], {("a", "b"): (1, 2, 1, 1)}),  # both directions of one pair: #(a,b) is 2, pairs 1
        ([("a a a", "b b")], {("a", "b"): (1, 1, 0, 0)}),  # repeated words count once a sentence
        ([("a b", "")], {}),  # only within one side: no entry
        ([("a", "b"), ("b", "a")], {("a", "b"): (2, 2, 0, 0)}),  # in two pairs, once in each direction
    ],
)
def test_counts_match_definition(tmp_path: Path, corpus: Corpus, cells: dict[Any, Any]) -> None:
    assert as_dictionary(count(corpus, tmp_path)) == cells


def test_finished_pieces_are_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = zipf_corpus(200)
    source = open_pairs([write_corpus(tmp_path / "corpus", corpus, 50)], FILTERS)

    class Broken(Exception):
        pass

    class StopsEarly(Jobs):
        def run(self, function: Any, arguments: Any, **options: Any) -> Any:
            if "counts" in options["description"]:
                arguments = arguments[:2]
                yield from super().run(function, arguments, **{**options, "sizes": None})
                raise Broken
            yield from super().run(function, arguments, **options)

    with pytest.raises(Broken):
        count_pairs(source, EACH_PAIR, tmp_path / "work", 4_000, StopsEarly())
    monkeypatch.setattr(
        "paraforge.products.lexicon.encoding.select_pairs",
        Mock(side_effect=AssertionError("tokenized again")),
    )
    counts = count_pairs(source, EACH_PAIR, tmp_path / "work", 4_000, Jobs())
    assert as_dictionary(counts) == expected(corpus, 1)


def test_piece_without_words_counts_nothing(tmp_path: Path) -> None:
    counts = count([("", "")] * 3 + [("a b", "c")] * 3, tmp_path, rows=3)
    assert as_dictionary(counts).keys() == {("a", "c"), ("b", "c")}


@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 9), max_size=7), st.sets(st.integers(0, 9), max_size=7)), max_size=6
    )
)
def test_row_increments_match_counting(pairs: list[tuple[set[int], set[int]]]) -> None:
    expected = [0] * 10
    for reference, translation in pairs:
        for u in range(10):
            for v in range(u):
                expected[u] += (u in reference and v in translation) + (u in translation and v in reference)
                expected[u] += {u, v} <= reference
                expected[u] += {u, v} <= translation
                expected[u] += {u, v} <= reference & translation
    sides, offsets = [], []
    for sentences in ([p[0] for p in pairs], [p[1] for p in pairs], [p[0] & p[1] for p in pairs]):
        words = [number << 32 | word for number, one in enumerate(sentences) for word in sorted(one)]
        sides.append(np.array(words, np.int64))
        offsets.append(np.cumsum([0, *map(len, sentences)]))
    assert count_increments(sides, offsets, 10).tolist() == expected


@given(st.lists(st.integers(0, 5_000), max_size=300), st.integers(1_000, 100_000))
@example([0] * 250 + [600] * 10, 1_000)  # each of these rows takes more than the memory
def test_rows_with_increments_are_in_one_block(increments: list[int], memory: int) -> None:
    rows = np.array(increments, np.int64)
    covered = np.zeros(len(rows), int)
    for block in plan_blocks(rows, memory):
        covered[block.first : block.last] += 1
        inside = rows[block.first : block.last]
        assert block.increments == inside.sum()
        cells = sum(range(block.first, block.last))
        taken = cells * COUNTERS * COUNTER_BYTES if block.dense else inside.sum() * COUNTER_BYTES
        assert taken <= memory or block.last == block.first + 1
    assert (covered <= 1).all()
    assert (covered[rows > 0] == 1).all()


def test_frequent_words_are_dense_and_rare_ones_sparse() -> None:
    increments = (1e6 / np.arange(1, 10_001)).astype(np.int64)
    blocks = plan_blocks(increments, 1 << 20)
    kinds = [block.dense for block in blocks]
    assert kinds == sorted(kinds, reverse=True)
    border = next(block.first for block in blocks if not block.dense)
    # A dense row takes 16 bytes a column, a sparse one 4 bytes an increment: equal at u = 500.
    assert border == pytest.approx(500, abs=1)


def test_aligned_shards_are_in_fingerprint(tmp_path: Path) -> None:
    found = set()
    for score in (0.5, 0.6):
        columns = {"reference": ["a"], "translation": ["b"]}, {"paraphrase_score": [score]}
        for name, one in zip(("translated", "scored"), columns, strict=True):
            write_index(tmp_path / name, [write_shard(pa.table(one), tmp_path / name / shard_name(0))], {})
        found.add(open_pairs([tmp_path / "translated", tmp_path / "scored"], FILTERS).fingerprint)
    assert len(found) == 2


@pytest.mark.parametrize(("minimum", "dropped"), [(0.5, {"no_score": 1, "score": 1}), (None, {})])
def test_unscored_pairs_count_without_minimum(minimum: float | None, dropped: dict[str, int]) -> None:
    columns = {"reference": ["a"] * 3, "translation": ["b"] * 3, "paraphrase_score": [None, 0.4, 0.5]}
    (sides, _), found = select_pairs(pa.table(columns), LexiconFilters(minimum_score=minimum))
    assert len(sides) == 3 - sum(dropped.values())
    assert {reason: number for reason, number in found.items() if number} == dropped


def test_pairs_with_held_out_sentence_are_not_counted(tmp_path: Path) -> None:
    held = pa.table({"reference": ["A dog."], "translation": ["One dog."]})
    write_index(tmp_path, [write_shard(held, tmp_path / shard_name(0))], {})
    sides = {"reference": ["a dog", "b", "b", "b"], "translation": ["c", "a dog !", "ONE DOG", "c"]}
    filters = LexiconFilters(minimum_score=None)
    (references, _), dropped = select_pairs(pa.table(sides), filters, open_held_out(tmp_path))
    assert (references.rows(), dropped["held_out"], sum(dropped.values())) == ([["b"]], 3, 3)
