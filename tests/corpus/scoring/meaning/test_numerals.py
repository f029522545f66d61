"""Numbers by their value."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.corpus.scoring.meaning.numerals import value_of


@given(st.integers(0, 10**12))
def test_digits_are_their_value_with_and_without_separators(number: int) -> None:
    assert value_of(str(number)) == value_of(f"{number:,}") == number
    assert value_of(f"{number}th") == value_of(f"{number}%") == number


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("five", 5),
        ("twenty-one", 21),
        ("ninety", 90),
        ("fifth", 5),
        ("2.5", 2.5),
        ("2,5", 2.5),
        ("1990s", 1990),
    ],
)
def test_words_and_fractions(token: str, value: float) -> None:
    assert value_of(token) == value


@pytest.mark.parametrize("token", ["dog", "", "one's", "-", "ⅷ"])
def test_other_tokens_are_none(token: str) -> None:
    assert math.isnan(value_of(token))


@given(st.text(max_size=400))
def test_every_token_has_an_answer(token: str) -> None:
    value = value_of(token)
    assert math.isnan(value) or value == value_of(token)


def test_what_is_no_number_but_has_digits_is_like_itself_alone() -> None:
    values = [value_of(token) for token in ("10:30", "10:31", "b52", "11:30", "30:10", "1030")]
    assert len(set(values)) == len(values)
