"""Numbers in words, names and pairs made by rule."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.corpus.scoring.meaning import names
from paraforge.corpus.scoring.meaning.made_pairs import RULES, changed
from paraforge.corpus.scoring.meaning.names import missing_names
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


def missing(first: str, second: str) -> tuple[int, int]:
    found = missing_names(pa.array([first]), pa.array([second]))
    return int(found[0, 0]), int(found[0, 1])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("He met Anna in Prague.", "He met Anna in London.", (1, 1)),
        ("He met Anna in Prague.", "He met Anna.", (1, 0)),
        ("He met Anna. Then it rained.", "He met Anna.", (0, 0)),
        ("Yesterday he met Zelensky.", "Yesterday he met Zelenskyj.", (0, 0)),
        ("He saw Chomutov.", "He saw Khomutov.", (0, 0)),
        ("He lives in Germany.", "He lives in the German town.", (0, 0)),
        ("The United Nations met.", "The UN met.", (0, 0)),
        ("MAN BITES DOG IN PARIS TODAY", "Man bites dog in London", (0, 1)),
        ("I DO NOT KNOW", "I know", (0, 0)),
        ("He met Ñuñez there.", "He met nobody there.", (1, 0)),
        ("", "He met Anna.", (0, 1)),
    ],
)
def test_names(first: str, second: str, expected: tuple[int, int]) -> None:
    assert missing(first, second) == expected
    assert missing(second, first) == expected[::-1]


pieces = st.sampled_from(
    ["Anna", "I", "UN", "x", "É", "ž", " ", " ", ". ", "'", "…", "“", "\u00a0", "(", ", ", "5"]
)


@given(st.lists(pieces, max_size=12).map("".join) | st.text(max_size=30))
def test_what_is_passed_over_quickly_has_no_name(text: str) -> None:
    found = np.frombuffer(text.encode(), np.uint8)
    begins, ends, kinds = np.empty((3, names.MOST_WORDS), np.int64)
    words = names._words(found, begins, ends, kinds)
    assert names._may_name(found) or not (kinds[:words] > 0).any()


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text(first: str, second: str) -> None:
    assert missing(first, second) == missing(second, first)[::-1]
    assert missing(first, first) == (0, 0)


def test_a_slice_is_read_from_its_start() -> None:
    first, second = pa.array(["x", "He met Anna."]), pa.array(["y", "He met Bob."])
    assert missing_names(first[1:], second[1:]).tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("negation", "She is happy.", {"She is not happy."}),
        ("negation", "She isn't happy.", {"She is happy."}),
        ("negation", "I can't swim.", {"I can swim."}),
        ("negation", "Nothing else.", None),
        ("person", "He lost his hat.", {"She lost his hat.", "He lost her hat."}),
        ("person", "I saw her.", {"I saw him."}),
        ("antonym", "It was possible.", {"It was impossible."}),
        ("exchange", "Yesterday Tom Smith hit Mary.", {"Yesterday Mary hit Tom Smith."}),
        ("exchange", "The dog bit a man.", {"A man bit the dog."}),
        ("exchange", "He bought the salt and the pepper.", None),
        ("number", "No number here.", None),
    ],
)
def test_rules(rule: str, text: str, expected: set[str] | None) -> None:
    made = {RULES[rule](text, random.Random(seed)) for seed in range(20)}
    assert made == (expected or {None})


@given(st.integers(2, 10**6), st.integers())
def test_another_number(number: int, seed: int) -> None:
    made = RULES["number"](f"It cost {number} crowns.", random.Random(seed))
    assert made is not None
    words = made.split()
    assert [*words[:2], *words[3:]] == ["It", "cost", "crowns."] and int(words[2]) != number


@given(st.text(max_size=80), st.integers(0, 2**64 - 1))
def test_a_number_decides_and_nothing_else(text: str, number: int) -> None:
    made = changed(text, number)
    assert made == changed(text, number)
    assert made is None or (made[0] != text and made[1] in RULES)
