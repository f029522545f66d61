"""Increments against plain Python; rows are cut completely, without overlap, within the memory."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.products.lexicon.counting import COUNTER_BYTES, plan_blocks
from paraforge.products.lexicon.encoding import count_increments
from paraforge.products.lexicon.pair_table import COUNTERS


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
    sides, offsets = [], []
    for sentences in ([p[0] for p in pairs], [p[1] for p in pairs], [p[0] & p[1] for p in pairs]):
        words = [number << 32 | word for number, one in enumerate(sentences) for word in sorted(one)]
        sides.append(np.array(words, np.int64))
        offsets.append(np.cumsum([0, *map(len, sentences)]))
    assert count_increments(sides, offsets, 10).tolist() == expected


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=300), st.integers(1_000, 100_000))
@example([0] * 250 + [600] * 10, 1_000)  # each of these rows takes more than the memory
def test_every_row_with_increments_is_in_one_block(increments: list[int], memory: int) -> None:
    rows = np.array(increments, np.int64)
    covered = np.zeros(len(rows), int)
    for block in plan_blocks(rows, memory):
        covered[block.first : block.last] += 1
        inside = rows[block.first : block.last]
        assert block.increments == inside.sum()
        cells = sum(range(block.first, block.last))
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
