"""PMI by arithmetic."""

from math import isnan, log

import numpy as np
import pytest

from paraforge.products.lexicon.extraction import cross_pmi, ordinary_pmi, pmi


def array(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_pmi() -> None:
    # 100 sentences, u in 20, v in 10: 2 together by chance
    assert pmi(array(2), array(20), array(10), 100)[0] == pytest.approx(0)
    # missing if never together
    assert isnan(pmi(array(0), array(20), array(10), 100)[0])
    # 50 pairs in both directions are N = 100; #(u,v) 6, #(u) 10, #(v) 12: ln(6 * 100 / 120)
    assert cross_pmi(array(6), array(10), array(12), 50)[0] == pytest.approx(log(5))


BOTH_SIDES = ((10, 20), (5, 4))
"""u in 10 references and 20 translations, v in 5 and 4, of 100 pairs."""


@pytest.mark.parametrize(
    ("together", "counts", "pseudo_count", "smooth_all", "value"),
    [
        # the mean of both sides, ln(2 * 100 / 50) and ln(3 * 100 / 80), whatever the pseudo-count
        ((2, 3), BOTH_SIDES, 1.0, False, (log(4) + log(3.75)) / 2),
        ((2, 3), BOTH_SIDES, 0.5, False, (log(4) + log(3.75)) / 2),
        # one side stands alone where the other has none
        ((2, 0), BOTH_SIDES, 1.0, False, log(4)),
        ((0, 3), BOTH_SIDES, 1.0, False, log(3.75)),
        # never in one sentence; over both sides #(u) = 30, #(v) = 9, N = 200: E = 1.35
        ((0, 0), BOTH_SIDES, 1.0, False, log(1 / 2.35)),
        ((0, 0), BOTH_SIDES, 0.5, False, log(0.5 / 1.85)),
        # which says little of rare words and much of frequent ones: E = 0.02 and 50
        ((0, 0), ((1, 1), (1, 1)), 1.0, False, log(1 / 1.02)),
        ((0, 0), ((50, 50), (50, 50)), 1.0, False, log(1 / 51)),
        # smoothed all: E = 0.5 and (2 + 0.5) / (0.5 + 0.5); E = 0.8 and (3 + 0.5) / (0.8 + 0.5)
        ((2, 3), BOTH_SIDES, 1.0, True, (log(2.5) + log(3.5 / 1.3)) / 2),
        # u in one reference and no translation, v in one of each: only references tell, E = 0.01
        ((1, 0), ((1, 0), (1, 1)), 1.0, True, log(1.5 / 0.51)),
        ((1, 0), ((1, 1), (1, 0)), 1.0, True, log(1.5 / 0.51)),
        # u in references alone, v in translations alone: only both sides together tell what to expect
        ((0, 0), ((10, 0), (0, 4)), 1.0, True, log(1 / (1 + 10 * 4 / 200))),
    ],
)
def test_ordinary_pmi(
    together: tuple[int, int], counts: tuple[tuple[int, int], ...], pseudo_count: float, smooth_all: bool,
    value: float,
) -> None:  # fmt: skip
    sides, *of_words = ((array(first), array(second)) for first, second in (together, *counts))
    assert ordinary_pmi(sides, *of_words, 100, pseudo_count, smooth_all)[0] == pytest.approx(value)
