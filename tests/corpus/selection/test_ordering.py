"""Cuts of a whole corpus by rank, against numpy's sort, and keys that are the same everywhere."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.shards.lineage import mixed, sampling_keys, text_keys
from paraforge.corpus.selection.ordering import rank, tenths

VALUES = st.one_of(
    st.lists(st.floats(width=32, allow_nan=False), max_size=120).map(lambda v: np.array(v, np.float32)),
    st.lists(st.sampled_from([-1.0, -0.0, 0.0, 0.25]), max_size=120).map(lambda v: np.array(v, np.float32)),
    st.lists(st.floats(allow_nan=False), max_size=60).map(lambda v: np.array(v, np.float64)),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=60).map(lambda v: np.array(v, np.int32)),
    st.lists(st.integers(-3, 3), max_size=120).map(lambda v: np.array(v, np.int8)),
    st.lists(st.integers(0, 2**64 - 1), max_size=60).map(lambda v: np.array(v, np.uint64)),
)


@settings(max_examples=15, deadline=None)
@given(VALUES, st.lists(st.integers(0, 120), max_size=4), st.integers(1, 130))
def test_cuts_are_those_of_a_stable_sort(values: Any, cuts: list[int], size: int) -> None:
    """Also where a tie spans shards and cuts, with fewer rows than tenths, and for samples of all rows."""
    shards = np.split(values, sorted(min(cut, len(values)) for cut in cuts))
    with tempfile.TemporaryDirectory() as directory:
        by_tenth = tenths(shards, Path(directory) / "tenths")
        sample = rank(shards, lambda count: [size], Path(directory) / "sample")
    order = np.empty(len(values), int)
    order[np.argsort(values, kind="stable")] = np.arange(len(values))
    for ranked, expected in (
        (by_tenth, 1 + order * 10 // max(len(values), 1)),
        (sample, np.where(order < size, 1, 2)),
    ):
        found = np.concatenate([ranked.parts(one, index) for index, one in enumerate(shards)])
        np.testing.assert_array_equal(found, expected)


def test_seeds_give_independent_samples() -> None:
    table = pa.table({"source": ["tatoeba", "news"] * 5_000, "line": pa.array(np.arange(10_000))})
    drawn = [set(np.argsort(sampling_keys(table, seed))[:2_000].tolist()) for seed in (1, 2)]
    # Expected 400, standard deviation 16.
    assert 320 < len(drawn[0] & drawn[1]) < 480


def test_keys_are_the_same_on_every_machine() -> None:
    """A sample that was published can be drawn again: these numbers must not change."""
    table = pa.table(
        {"source": ["tatoeba", "news"], "line": pa.array([1, 2]), "rank": pa.array([0, 1], pa.int8())}
    )
    assert sampling_keys(table, 1).tolist() == [6402673391596897608, 10595463565838271322]
    assert mixed(np.array([0, 1], np.uint64), "edges").tolist() == [8524046638446852662, 7422713579291611337]
    (key,) = text_keys(pa.array(["a"]), pa.array(["ž"])).tolist()
    assert key == [918864828167162086, 11759247589531945373]
