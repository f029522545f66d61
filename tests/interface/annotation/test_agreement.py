"""Cohen's kappa against hand arithmetic and its definition."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from paraforge.interface.annotation.results import cohen_kappa

# Ten items. Equal: 6. First gives 1, 2, 3: 3, 3, 4 times; second: 3, 4, 3 times.
FIRST = [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]
SECOND = [1, 1, 2, 2, 2, 3, 3, 3, 2, 1]


def test_by_hand() -> None:
    # Chance: (3*3 + 3*4 + 4*3) / 100 = 0.33; (0.6 - 0.33) / (1 - 0.33)
    assert cohen_kappa(FIRST, SECOND) == pytest.approx(0.27 / 0.67)


def test_linear_by_hand() -> None:
    # Observed distance: three by 1 and one by 2 = 5. Expected, over 10: by 1: 3*4 + 3*3 + 3*3 + 4*4 = 46;
    # by 2: (3*3 + 4*3) * 2 = 42; (46 + 42) / 10 = 8.8.
    assert cohen_kappa(FIRST, SECOND, linear=True) == pytest.approx(1 - 5 / 8.8)


@pytest.mark.parametrize("linear", [False, True])
def test_limits(linear: bool) -> None:
    assert cohen_kappa([1, 2, 3, 3], [1, 2, 3, 3], linear=linear) == pytest.approx(1)
    assert cohen_kappa([1, 3], [3, 1], linear=linear) == pytest.approx(-1)
    assert cohen_kappa([1, 1, 2, 2], [1, 2, 1, 2], linear=linear) == pytest.approx(0)
    assert cohen_kappa([], [], linear=linear) is None
    assert cohen_kappa([3, 3], [3, 3], linear=linear) is None
    with pytest.raises(ValueError, match="numbers of samples"):
        cohen_kappa([1], [1, 2], linear=linear)


def kappa_of_pairs(first: list[int], second: list[int], linear: bool) -> Fraction:
    """1 - mean disagreement / mean disagreement of each grade of one with each grade of the other."""

    def disagreement(one: int, other: int) -> int:
        return abs(one - other) if linear else int(one != other)

    observed = Fraction(sum(map(disagreement, first, second)), len(first))
    chance = Fraction(sum(disagreement(one, other) for one in first for other in second), len(first) ** 2)
    return 1 - observed / chance


@pytest.mark.parametrize("linear", [False, True])
def test_the_definition(linear: bool) -> None:
    draw = random.Random(3)
    for _ in range(30):
        first = draw.choices([1, 2, 3], weights=[1, 2, 5], k=40)
        second = [grade if draw.random() < 0.6 else draw.choice([1, 2, 3]) for grade in first]
        expected = float(kappa_of_pairs(first, second, linear))
        assert cohen_kappa(first, second, linear=linear) == pytest.approx(expected)
