"""Sampling without replacement: exact size, fixed by seed and lineage alone."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.shards.lineage import mixed, sampling_keys, text_keys
from paraforge.corpus.selection.ordering import rank


def lineage(rows: int, source: str = "tatoeba") -> pa.Table:
    names = [source if row % 3 else "news" for row in range(rows)]
    ranks = pa.array(np.arange(rows) % 2, pa.int8())
    return pa.table({"source": names, "line": pa.array(np.arange(rows) // 2, pa.int64()), "rank": ranks})


def is_drawn(keys: list[Any], size: int) -> list[Any]:
    """Which rows of each shard are in a sample, by their keys."""
    with tempfile.TemporaryDirectory() as directory:
        ranked = rank(keys, lambda count: [size], Path(directory) / "sample", "sample")
    return [ranked.parts(one, index) == 1 for index, one in enumerate(keys)]


def drawn(table: pa.Table, cuts: list[int], size: int, seed: int = 1) -> set[tuple[Any, ...]]:
    edges = [0, *sorted(cuts), table.num_rows]
    shards = [table.slice(start, end - start) for start, end in itertools.pairwise(edges)]
    inside = is_drawn([sampling_keys(shard, seed) for shard in shards], size)
    chosen: list[tuple[Any, ...]] = []
    for shard, mask in zip(shards, inside, strict=True):
        chosen += [tuple(row.values()) for row in shard.filter(pa.array(mask)).to_pylist()]
    assert len(chosen) == min(size, table.num_rows)
    return set(chosen)


@settings(max_examples=8, deadline=None)
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


def test_seeds_give_independent_samples() -> None:
    table = lineage(10_000)
    common = drawn(table, [], 2_000, seed=1) & drawn(table, [], 2_000, seed=2)
    # Expected 400, standard deviation 16.
    assert 320 < len(common) < 480


def test_keys_are_the_same_on_every_machine() -> None:
    """A sample that was published can be drawn again: these numbers must not change."""
    table = pa.table(
        {"source": ["tatoeba", "news"], "line": pa.array([1, 2]), "rank": pa.array([0, 1], pa.int8())}
    )
    assert sampling_keys(table, 1).tolist() == [6402673391596897608, 10595463565838271322]
    assert mixed(np.array([0, 1], np.uint64), "edges").tolist() == [8524046638446852662, 7422713579291611337]
    (key,) = text_keys(pa.array(["a"]), pa.array(["ž"])).tolist()
    assert key == [918864828167162086, 11759247589531945373]


def test_equal_lineage_is_drawn_in_row_order() -> None:
    """Rows of one source may share a line; the sample still has exactly the size asked for."""
    table = pa.table({"source": ["a"] * 9, "line": pa.array([1] * 9, pa.int64()), "number": range(9)})
    shards = [table.slice(0, 4), table.slice(4, 5)]
    keys = [sampling_keys(shard, 1) for shard in shards]
    assert [mask.tolist() for mask in is_drawn(keys, 6)] == [
        [True] * 4,
        [True, True, False, False, False],
    ]
