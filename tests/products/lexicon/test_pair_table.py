"""The compiled loops against plain Python; rows are cut completely, without overlap, within the memory."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.text.idf import sentence_counts
from paraforge.products.lexicon import pair_table
from paraforge.products.lexicon.counting import COUNTER_BYTES, plan_blocks
from paraforge.products.lexicon.pair_table import COUNTERS, triangle

sentences = st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=8)


def _flat(rows: list[list[int]], kind: type = np.int32) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return np.array([word for row in rows for word in row], kind), offsets


@given(sentences)
def test_a_word_counts_once_a_sentence(rows: list[list[int]]) -> None:
    expected = Counter(word for row in rows for word in set(row))
    counts = sentence_counts(*_flat(rows), 10)
    assert counts.tolist() == [expected[word] for word in range(10)]


@given(sentences)
def test_ranks_are_distinct_ascending_and_without_dropped_words(rows: list[list[int]]) -> None:
    ranks = np.array([3, 1, 4, pair_table.DROPPED, 5, 9, 2, 6, pair_table.DROPPED, 0], np.uint32)
    offsets, found = pair_table.distinct_ranks(*_flat(rows), ranks)
    expected = [sorted({int(ranks[word]) for word in row} - {pair_table.DROPPED}) for row in rows]
    assert [found[a:b].tolist() for a, b in itertools.pairwise(offsets)] == expected


@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 9), max_size=7), st.sets(st.integers(0, 9), max_size=7)), max_size=6
    )
)
def test_row_increments_are_what_counting_makes(pairs: list[tuple[set[int], set[int]]]) -> None:
    expected = [0] * 10
    for reference, translation in pairs:
        for u in range(10):
            for v in range(u):
                expected[u] += (u in reference and v in translation) + (u in translation and v in reference)
                expected[u] += {u, v} <= reference
                expected[u] += {u, v} <= translation
                expected[u] += {u, v} <= reference & translation
    sides = [_flat([sorted(pair[side]) for pair in pairs], np.uint32) for side in (0, 1)]
    (references, starts), (translations, others) = sides
    rows = np.zeros(10, np.int64)
    table = (starts.astype(np.int32), references, others.astype(np.int32), translations)
    pair_table.count_row_increments(table, rows)
    assert rows.tolist() == expected


@pytest.mark.parametrize(("row", "cells"), [(0, 0), (1, 0), (2, 1), (5, 10), (200_000, 19_999_900_000)])
def test_triangle(row: int, cells: int) -> None:
    assert pair_table.triangle(row) == cells


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=300), st.integers(1_000, 100_000))
def test_every_row_with_increments_is_in_one_block(increments: list[int], memory: int) -> None:
    rows = np.array(increments, np.int64)
    covered = np.zeros(len(rows), int)
    for block in plan_blocks(rows, memory):
        covered[block.first : block.last] += 1
        inside = rows[block.first : block.last]
        assert block.increments == inside.sum()
        cells = triangle(block.last) - triangle(block.first)
        taken = cells * COUNTERS * COUNTER_BYTES if block.dense else inside.sum() * COUNTER_BYTES
        assert taken <= memory or block.last == block.first + 1
    assert covered.max() <= 1
    assert (covered[rows > 0] == 1).all()


def test_frequent_words_are_dense_and_rare_ones_sparse() -> None:
    increments = (1e6 / np.arange(1, 10_001)).astype(np.int64)
    blocks = plan_blocks(increments, 1 << 20)
    kinds = [block.dense for block in blocks]
    assert kinds == sorted(kinds, reverse=True)
    border = next(block.first for block in blocks if not block.dense)
    # A dense row takes 16 bytes a column, a sparse one 4 bytes an increment: equal at u = 500.
    assert border == pytest.approx(500, abs=1)


def test_no_words_give_no_blocks() -> None:
    assert plan_blocks(np.zeros(0, np.int64), 1 << 20) == []
