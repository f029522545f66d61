"""PMIs by arithmetic."""

import math

import numpy as np
import pytest

from paraforge.products.lexicon.extraction import cross_pmi, ordinary_pmi, pmi


def array(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_pmi() -> None:
    # 100 sentences, u in 20, v in 10: 2 together by chance
    assert pmi(array(2), array(20), array(10), 100)[0] == pytest.approx(0)
    # missing if never together
    assert math.isnan(pmi(array(0), array(20), array(10), 100)[0])
    # 50 pairs in both directions are N = 100; #(u,v) 6, #(u) 10, #(v) 12: ln(6 * 100 / 120)
    assert cross_pmi(array(6), array(10), array(12), 50)[0] == pytest.approx(math.log(5))


def within(reference: int, translation: int, **options: bool | float) -> float:
    """u in 10 references and 20 translations, v in 5 and 4, of 100 pairs."""
    return float(
        ordinary_pmi(
            (array(reference), array(translation)),
            (array(10), array(20)),
            (array(5), array(4)),
            100,
            float(options.get("pseudo_count", 1.0)),
            bool(options.get("smooth_all", False)),
        )[0]
    )


def test_ordinary_pmi_is_the_mean_of_both_sides() -> None:
    # ln(2 * 100 / 50) = ln 4 and ln(3 * 100 / 80) = ln 3.75
    assert within(2, 3) == pytest.approx((math.log(4) + math.log(3.75)) / 2)
    # one side stands alone where the other has none
    assert within(2, 0) == pytest.approx(math.log(4))
    assert within(0, 3) == pytest.approx(math.log(3.75))


@pytest.mark.parametrize(
    # over both sides #(u) = 30, #(v) = 9, N = 200: E = 1.35
    ("pseudo_count", "value"),
    [(1.0, math.log(1 / 2.35)), (0.5, math.log(0.5 / 1.85))],
)
def test_words_never_in_one_sentence(pseudo_count: float, value: float) -> None:
    assert within(0, 0, pseudo_count=pseudo_count) == pytest.approx(value)
    # Words that do share a sentence keep their value.
    assert within(2, 3, pseudo_count=pseudo_count) == pytest.approx(within(2, 3))


def test_smoothing_all_draws_every_side_towards_independence() -> None:
    # references: E = 0.5, (2 + 0.5) / (0.5 + 0.5); translations: E = 0.8, (3 + 0.5) / (0.8 + 0.5)
    expected = (math.log(2.5) + math.log(3.5 / 1.3)) / 2
    assert within(2, 3, smooth_all=True) == pytest.approx(expected)


def test_words_of_opposite_sides_only_have_shrunken_pmi() -> None:
    """u in references alone, v in translations alone: only both sides together tell what to expect."""
    value = ordinary_pmi((array(0), array(0)), (array(10), array(0)), (array(0), array(4)), 100, 1.0, True)[0]
    assert value == pytest.approx(math.log(1 / (1 + 10 * 4 / 200)))


def test_shrinkage_says_little_of_rare_words_and_much_of_frequent_ones() -> None:
    nothing = (array(0, 0), array(0, 0))
    counts = (array(1, 500), array(1, 500))
    rare, frequent = ordinary_pmi(nothing, counts, counts, 1000, 1.0)
    assert -0.01 < rare < 0
    assert frequent == pytest.approx(math.log(1 / 501))
