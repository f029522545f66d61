"""Shared n-grams are what a Counter of them says, whatever is next to a row."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paraforge.base.text.ngrams import shared_ngrams
from paraforge.base.text.tokens import tokenize_columns

WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=12) | st.lists(
    st.integers(0, 40).map(lambda number: f"w{number}"), max_size=90
)


def ngrams(words: list[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[first : first + order]) for first in range(len(words) - order + 1))


@settings(max_examples=150)
@given(st.lists(st.tuples(WORDS, WORDS), max_size=8), st.integers(1, 5))
def test_against_counters(rows: list[tuple[list[str], list[str]]], highest: int) -> None:
    columns = tokenize_columns(*(pa.array([" ".join(row[side]) for row in rows]) for side in (0, 1)))
    expected = [
        [(ngrams(one, order) & ngrams(other, order)).total() for one, other in rows]
        for order in range(1, highest + 1)
    ]
    assert shared_ngrams(*columns, highest).tolist() == expected
