"""An order without memory is a permutation, another one for each seed and epoch."""

from __future__ import annotations

import numpy as np
import pytest

from paraforge.embeddings.unrolling.objective import Permutation


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097])
def test_everything_comes_once(size: int) -> None:
    order = Permutation(size, seed=1, epoch=0)(np.arange(size))
    assert sorted(order.tolist()) == list(range(size))


def test_any_part_is_that_of_the_whole() -> None:
    permutation = Permutation(1000, 3, 2)
    whole = permutation(np.arange(1000))
    np.testing.assert_array_equal(permutation(np.array([999, 5, 5, 0])), whole[[999, 5, 5, 0]])


def test_it_depends_on_seed_and_epoch_alone() -> None:
    places = np.arange(500)
    orders = [Permutation(500, seed, epoch)(places).tolist() for seed in (1, 2) for epoch in (0, 1)]
    assert orders[0] == Permutation(500, 1, 0)(places).tolist()
    assert len({tuple(order) for order in orders}) == 4


def test_it_is_without_visible_order() -> None:
    """Neighbouring places lead far apart, and each tenth of the places to all tenths of the values."""
    order = Permutation(10_000, 1, 0)(np.arange(10_000))
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.05
    assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.05
    counts, _, _ = np.histogram2d(np.arange(10_000), order, bins=10)
    assert counts.min() > 60  # 100 are expected in each


def test_sizes_beyond_any_memory() -> None:
    values = Permutation(10**12, 1, 0)(np.arange(1000))
    assert len(set(values.tolist())) == 1000
    assert values.min() >= 0 and values.max() < 10**12 and values.max() > 9 * 10**11
