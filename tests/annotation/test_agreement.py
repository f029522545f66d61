"""Cohen's kappa against hand arithmetic and scikit-learn."""

from __future__ import annotations

import random

import pytest

from paraforge.annotation.agreement import cohen_kappa, raw_agreement

# Ten items. Equal: 6. First gives 1, 2, 3: 3, 3, 4 times; second: 3, 4, 3 times.
FIRST = [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]
SECOND = [1, 1, 2, 2, 2, 3, 3, 3, 2, 1]


def test_by_hand() -> None:
    # Chance: (3*3 + 3*4 + 4*3) / 100 = 0.33; (0.6 - 0.33) / (1 - 0.33)
    assert raw_agreement(FIRST, SECOND) == pytest.approx(0.6)
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
    with pytest.raises(ValueError, match="1 grades"):
        cohen_kappa([1], [1, 2], linear=linear)


@pytest.mark.parametrize("linear", [False, True])
def test_as_scikit_learn(linear: bool) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    draw = random.Random(3)
    for _ in range(30):
        first = draw.choices([1, 2, 3], weights=[1, 2, 5], k=40)
        second = [grade if draw.random() < 0.6 else draw.choice([1, 2, 3]) for grade in first]
        expected = metrics.cohen_kappa_score(
            first, second, labels=[1, 2, 3], weights="linear" if linear else None
        )
        assert cohen_kappa(first, second, linear=linear) == pytest.approx(expected)
