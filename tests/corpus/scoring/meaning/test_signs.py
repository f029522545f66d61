"""What each sign sees; that the order of the sides, other rows and the cut of a column decide nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.scoring.meaning.pairs import columns, evidence, of, signs

WORDS = [
    "john", "mary", "hit", "the", "dog", "cat", "not", "isn't", "never", "happy", "unhappy", "two", "5",
    "1,000", "hundred", "he", "she", "his", "from", "to", "by", "was", "and", ",", ".",
    "Prague", "Praha", "Á", "of",
]  # fmt: skip
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@given(st.lists(st.tuples(texts | st.text(max_size=30), texts), min_size=1, max_size=6))
def test_sides_may_be_exchanged(pairs: list[tuple[str, str]]) -> None:
    one, counts = evidence().signs(of(pairs))
    other, turned = evidence().signs(of([(second, first) for first, second in pairs]))
    assert np.array_equal(one, other)
    assert np.array_equal(counts[:, [1, 0, *range(2, counts.shape[1])]], turned)


@given(st.lists(texts | st.text(max_size=40), min_size=1, max_size=6))
def test_a_text_and_itself_have_no_sign(found: list[str]) -> None:
    assert not evidence().signs(of([(text, text) for text in found]))[0].any()
    for row in columns(*((text, text) for text in found)):
        assert (
            row["contradiction"] in (0, None) and row["reference_negations"] == row["translation_negations"]
        )


@given(st.lists(st.tuples(texts, texts), min_size=2, max_size=6))
def test_a_pair_is_judged_by_itself(pairs: list[tuple[str, str]]) -> None:
    together = columns(*pairs)
    assert together == [columns(pair)[0] for pair in pairs]
    assert all(row["contradiction"] is None or 0 <= row["contradiction"] <= 1 for row in together)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("She is happy.", "She is not happy.", {"negation_odd", "negation_near"}),
        ("It isn't far.", "It is far.", {"negation_odd"}),
        ("The toy is safe.", "The toy is unsafe.", {"affixes", "flipped", "antonyms_in_place"}),
        ("He was never unhappy.", "He was happy.", {"flipped_twice"}),
        ("It costs 50 dollars.", "It costs 500 dollars.", {"numbers_replaced"}),
        ("He has three cats.", "He has four cats.", {"numbers_replaced"}),
        ("Her husband feeds his dog.", "Her husband feeds her dog.", {"gender", "gender_in_place"}),
        ("I saw you.", "I saw them.", {"person_in_place"}),
        ("John hit Mary.", "Mary hit John.", {"exchange", "places_exchanged"}),
        ("flights from Boston to Denver", "flights from Denver to Boston", {"exchange_linked"}),
        ("He met Anna in Prague.", "He met Anna in London.", {"names_replaced"}),
    ],
)
def test_what_is_seen(first: str, second: str, expected: set[str]) -> None:
    assert expected <= signs((first, second))[0].keys()
    assert not expected & signs((first, first))[0].keys()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Five dogs bark.", "5 dogs bark."),
        ("It cost 1,000 crowns.", "It cost 1000 crowns."),
        ("Two hundred men died.", "200 men died."),
        ("twenty five people", "twenty-five people"),
        ("2 million crowns", "two million crowns"),
        ("the 5th row", "the fifth row"),
    ],
)
def test_equal_numbers_are_no_sign(first: str, second: str) -> None:
    row = columns((first, second))[0]
    assert row["numbers_missing"] == 0
    assert not {"numbers_replaced", "numbers_alone"} & signs((first, second))[0].keys()


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (("The toy is safe.", "The toy is not dangerous."), ("The toy is safe.", "The toy is dangerous.")),
        (("Salt and pepper.", "Pepper and salt."), ("Salt of pepper.", "Pepper of salt.")),
        (("It cost five crowns.", "It cost 5 crowns."), ("It cost five crowns.", "It cost 6 crowns.")),
        (("Anna went to Prague.", "Anna left for Prague."), ("Anna went to Prague.", "Anna went to London.")),
        (("Mary hit John.", "John was hit by Mary."), ("Mary hit John.", "John hit Mary.")),
    ],
)
def test_a_contradiction_is_surer_than_a_paraphrase(good: tuple[str, str], bad: tuple[str, str]) -> None:
    paraphrase, contradiction = columns(good, bad)
    assert paraphrase["contradiction"] < contradiction["contradiction"]


def test_a_side_without_a_token_has_no_contradiction() -> None:
    assert [row["contradiction"] for row in columns(("", "Not so."), ("Not so.", " "), ("", ""))] == [
        None
    ] * 3


def test_a_long_text_is_read_to_its_limit() -> None:
    text = "the dog " * 10_000
    assert columns((text, text + "not"))[0]["contradiction"] == 0
