"""The area under the ROC curve by counting pairs, and the rows that mismatched pairs are made of."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.corpus.scoring.verdict import area
from paraforge.corpus.scoring.wrong_pairs import rows_of_similar_length

_WORDS = random.Random(5)
TRANSLATIONS = [" ".join(f"{row}_{k}" for k in range(_WORDS.randint(1, 40))) for row in range(300)]
REFERENCES = [f"reference {row}" for row in range(300)]


def test_another_sentence_has_a_similar_length() -> None:
    rows = rows_of_similar_length(REFERENCES, TRANSLATIONS)
    lengths = np.array([len(text.split()) for text in TRANSLATIONS])
    assert np.abs(lengths[rows] - lengths).max() <= 1
    # Next in the order of lengths: all but the last two rows are another row's only once.
    assert len(set(rows.tolist())) >= len(rows) - 1


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y y", "z z z"])), min_size=1),
    st.integers(0, 3),
)
def test_another_sentence_differs_in_both_texts(pairs: list[tuple[str, str]], seed: int) -> None:
    references, translations = map(list, zip(*pairs, strict=True))
    possible = [any(a != c and b != d for c, d in pairs) for a, b in pairs]
    others = rows_of_similar_length(references, translations, seed)
    assert (others >= 0).tolist() == possible
    for row in np.flatnonzero(others >= 0):
        assert references[row] != references[others[row]]
        assert translations[row] != translations[others[row]]


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1),
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1),
)
def test_the_area_is_the_share_of_pairs_in_the_right_order(right: list[float], wrong: list[float]) -> None:
    in_order = sum((r > w) + (r == w) / 2 for r in right for w in wrong)
    assert area(np.array(right), np.array(wrong)) == pytest.approx(in_order / len(right) / len(wrong))


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 4)), min_size=1),
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 4)), min_size=1),
)
def test_a_weight_is_as_many_translations(
    right: list[tuple[float, int]], wrong: list[tuple[float, int]]
) -> None:
    """A translation of weight 3 counts as three of weight 1."""
    weighted = [np.array(side, dtype=float).T for side in (right, wrong)]
    repeated = [np.repeat(scores, weights.astype(int)) for scores, weights in weighted]
    (a, a_weights), (b, b_weights) = weighted
    assert area(a, b, a_weights, b_weights) == pytest.approx(area(*repeated))


@pytest.mark.parametrize(("right", "wrong"), [([], [1.0]), ([1.0], []), ([np.nan], [1.0])])
def test_an_area_needs_scores(right: list[float], wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="scores"):
        area(np.array(right), np.array(wrong))
