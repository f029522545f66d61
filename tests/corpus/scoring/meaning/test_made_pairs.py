"""Each rule changes what it says, and nothing where it does not apply."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.corpus.scoring.meaning.made_pairs import RULES, changed


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
