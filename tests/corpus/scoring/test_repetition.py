"""Repetitions against a count of slices, and the kinds of them that models fall into."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.text.tokens import tokenize, tokenize_columns
from paraforge.corpus.scoring.repetition import LENGTH, repeated_shares


def slow(reference: str, translation: str) -> float:
    def pieces(text: str) -> list[str]:
        joined = f" {' '.join(tokenize(text))} "
        return [joined[start : start + LENGTH] for start in range(len(joined) - LENGTH + 1)]

    expected, found = Counter(pieces(reference)), Counter(pieces(translation))
    if not tokenize(translation) or not found:
        return 0.0
    return sum(max(0, n - max(1, expected[piece])) for piece, n in found.items()) / found.total()


def shares(references: list[str], translations: list[str]) -> list[float]:
    return repeated_shares(*tokenize_columns(pa.array(references), pa.array(translations))).tolist()


TEXTS = st.lists(st.text(st.sampled_from("ab é😀."), max_size=40), min_size=2, max_size=8)


@given(TEXTS)
def test_against_slices(texts: list[str]) -> None:
    half = len(texts) // 2
    references, translations = texts[:half], texts[half : 2 * half]
    expected = list(map(slow, references, translations))
    np.testing.assert_allclose(shares(references, translations), expected, atol=1e-6)


@pytest.mark.parametrize(
    "translation",
    [
        "a giant corimentmentmentmentment at night",
        "a giant tree at night at night at night at night",
        "a a a a a a a a a a a a a a a a",
        "a giant tree!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
    ],
)
def test_what_repeats_itself_does_so_whatever_it_repeats(translation: str) -> None:
    reference = "a giant sequoia tree at night"
    assert shares([reference], [translation])[0] > 0.2
    # What the reference repeats may be repeated.
    assert shares([translation], [translation]) == [0]
    assert shares([reference], ["a giant tree at night in a forest"]) == [0]


def test_a_long_row_does_not_slow_down_or_change_the_others() -> None:
    texts = ["one two three"] * 3 + ["word " * 50_000] + ["one two three"] * 3
    assert shares(texts, texts) == [0] * 7
    assert shares(["word"] * 2, ["word " * 50_000, "word"])[1] == 0
