"""Sampling without replacement: exact size, fixed by seed and lineage alone."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.shards.lineage import sampling_keys
from paraforge.corpus.selection.filters.sample import draw_sample


def lineage(rows: int, source: str = "tatoeba") -> pa.Table:
    names = [source if row % 3 else "news" for row in range(rows)]
    ranks = pa.array(np.arange(rows) % 2, pa.int8())
    return pa.table({"source": names, "line": pa.array(np.arange(rows) // 2, pa.int64()), "rank": ranks})


def drawn(table: pa.Table, cuts: list[int], size: int, seed: int = 1) -> set[tuple[Any, ...]]:
    edges = [0, *sorted(cuts), table.num_rows]
    shards = [table.slice(start, end - start) for start, end in itertools.pairwise(edges)]
    keys = [sampling_keys(shard, seed) for shard in shards]
    sample = draw_sample(lambda function: map(function, keys), size)
    chosen: list[tuple[Any, ...]] = []
    for index, (shard, shard_keys) in enumerate(zip(shards, keys, strict=True)):
        rows = shard.filter(pa.array(sample.draws(shard_keys, index))).to_pylist()
        chosen += [tuple(row.values()) for row in rows]
    assert len(chosen) == sample.size
    return set(chosen)


@settings(max_examples=60)
@given(st.integers(1, 300), st.integers(1, 320), st.integers(0, 5), st.lists(st.integers(0, 300), max_size=5))
def test_the_sample_is_the_smallest_keys_whatever_the_shards(
    rows: int, size: int, seed: int, cuts: list[int]
) -> None:
    table = lineage(rows)
    keys = sampling_keys(table, seed)
    smallest = np.argsort(keys, kind="stable")[:size]
    expected = {tuple(row.values()) for row in table.take(pa.array(smallest)).to_pylist()}
    found = drawn(table, [min(cut, rows) for cut in cuts], size, seed)
    assert found == expected
    assert len(found) == min(size, rows)


def test_the_order_of_rows_does_not_matter() -> None:
    table = lineage(500)
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(500)))
    assert drawn(table, [100], 50) == drawn(shuffled, [10, 300], 50)


def test_seeds_give_independent_samples() -> None:
    table = lineage(10_000)
    common = drawn(table, [], 2_000, seed=1) & drawn(table, [], 2_000, seed=2)
    # Expected 400, standard deviation 16.
    assert 320 < len(common) < 480


def test_a_sample_is_spread_evenly_over_the_corpus() -> None:
    table = lineage(30_000)
    lines = np.array([line for _, line, _ in drawn(table, [], 10_000)])
    tenths = np.bincount(lines // 1_500)
    # Each tenth of the lines has 1,000 expected draws, standard deviation 26.
    assert (abs(tenths - 1_000) < 130).all()


def test_keys_are_the_same_on_every_machine() -> None:
    """A sample that was published can be drawn again: these numbers must not change."""
    table = pa.table(
        {"source": ["tatoeba", "news"], "line": pa.array([1, 2]), "rank": pa.array([0, 1], pa.int8())}
    )
    assert sampling_keys(table, 1).tolist() == [6402673391596897608, 10595463565838271322]


def test_equal_lineage_is_drawn_in_row_order() -> None:
    """Rows of one source may share a line; the sample still has exactly the size asked for."""
    table = pa.table({"source": ["a"] * 9, "line": pa.array([1] * 9, pa.int64()), "number": range(9)})
    shards = [table.slice(0, 4), table.slice(4, 5)]
    keys = [sampling_keys(shard, 1) for shard in shards]
    sample = draw_sample(lambda function: map(function, keys), 6)
    assert [sample.draws(k, index).tolist() for index, k in enumerate(keys)] == [
        [True] * 4,
        [True, True, False, False, False],
    ]


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        draw_sample(lambda function: [], 0)
