"""Exact order statistics and tenths, against numpy's sort."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.corpus.selection import quantiles
from paraforge.corpus.selection.quantiles import equal_parts, order_statistics, ordered_keys, value_of_key


def scan_of(shards: list[Any]) -> Callable[[Callable[[Any], Any]], Iterable[Any]]:
    return lambda function: map(function, shards)


def tenths_by_sorting(values: Any, parts: int) -> Any:
    """The slow oracle: a stable sort, so ties are ranked in row order."""
    expected = np.empty(len(values), int)
    expected[np.argsort(values, kind="stable")] = 1 + np.arange(len(values)) * parts // max(len(values), 1)
    return expected


def assign(values: Any, cuts: list[int], parts: int) -> Any:
    shards = [ordered_keys(shard) for shard in np.split(values, sorted(cuts))]
    tenths = equal_parts(scan_of(shards), parts)
    return np.concatenate([tenths.assign(keys, index) for index, keys in enumerate(shards)])


VALUES = st.one_of(
    st.lists(st.floats(width=32, allow_nan=False), max_size=120).map(lambda v: np.array(v, np.float32)),
    st.lists(st.sampled_from([-1.0, -0.0, 0.0, 0.25]), max_size=120).map(lambda v: np.array(v, np.float32)),
    st.lists(st.floats(allow_nan=False), max_size=60).map(lambda v: np.array(v, np.float64)),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=60).map(lambda v: np.array(v, np.int32)),
    st.lists(st.integers(-3, 3), max_size=120).map(lambda v: np.array(v, np.int8)),
)


@settings(max_examples=300)
@given(
    VALUES, st.lists(st.integers(0, 120), max_size=4), st.integers(2, 12), st.sampled_from([0, 5, 1 << 20])
)
def test_parts_are_those_of_a_stable_sort(values: Any, cuts: list[int], parts: int, held: int) -> None:
    """Also where keys are never held in memory, and where a tie spans shards and cuts."""
    usual, quantiles.HELD_KEYS = quantiles.HELD_KEYS, held
    try:
        found = assign(values, [min(cut, len(values)) for cut in cuts], parts)
    finally:
        quantiles.HELD_KEYS = usual
    np.testing.assert_array_equal(found, tenths_by_sorting(values, parts))


def test_large_corpus_with_heavy_ties() -> None:
    """Half of all trigram overlaps are 0: five tenths lie within one tie that spans every shard."""
    random = np.random.default_rng(3)
    values = np.where(random.random(200_000) < 0.5, 0, random.random(200_000)).astype(np.float32)
    found = assign(values, list(range(7_000, 200_000, 7_000)), 10)
    np.testing.assert_array_equal(found, tenths_by_sorting(values, 10))
    assert np.bincount(found)[1:].tolist() == [20_000] * 10


@settings(max_examples=200)
@given(VALUES)
def test_keys_sort_as_values_and_come_back(values: Any) -> None:
    keys = ordered_keys(values)
    order = np.argsort(values, kind="stable")
    assert (np.diff(keys[order].astype(object)) >= 0).all()
    assert (np.argsort(keys, kind="stable") == order).all()
    assert [value_of_key(int(key), values.dtype) for key in keys] == values.tolist()


@pytest.mark.parametrize("kind", [np.uint64, np.uint32, np.uint16])
def test_order_statistics_say_how_many_ties_there_are(kind: type) -> None:
    keys = np.array([5, 1, 5, 5, 9], kind)
    count, found = order_statistics(scan_of([keys[:2], keys[2:]]), lambda n: range(n))
    assert count == 5
    assert [(one.key, one.ties_below, one.ties) for one in found] == [
        (1, 0, 1),
        (5, 0, 3),
        (5, 1, 3),
        (5, 2, 3),
        (9, 0, 1),
    ]


def test_a_rank_outside_of_the_corpus_is_refused() -> None:
    with pytest.raises(ValueError, match="ranks"):
        order_statistics(scan_of([np.array([1], np.uint32)]), lambda n: [n])


def test_text_has_no_tenths() -> None:
    with pytest.raises(TypeError, match="no order"):
        ordered_keys(np.array(["a"]))


def test_nothing_has_no_tenths() -> None:
    assert equal_parts(scan_of([])).count == 0
