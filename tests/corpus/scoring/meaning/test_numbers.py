"""Numbers of both sides against what a reader counts, however they are written."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.scoring.meaning.pairs import columns, signs

SMALL = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
TENS = str.split("zero ten twenty thirty forty fifty sixty seventy eighty ninety")


def spelled(number: int, hyphen: str = "-", link: str = " and ") -> str:
    """A number below 10^9 in words."""
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            behind = "" if not rest else f"{link if rest < 100 else ' '}{spelled(rest, hyphen, link)}"
            return f"{spelled(number // size, hyphen, link)} {name}{behind}"
    if number < 20:
        return SMALL[number]
    return TENS[number // 10] + (f"{hyphen}{SMALL[number % 10]}" if number % 10 else "")


def spellings(number: int) -> list[str]:
    """Ways to write a number."""
    found = [str(number), f"{number:,}", f"{number:,}".replace(",", " "), spelled(number)]
    found += [spelled(number, " ", " "), spelled(number, "-", " "), spelled(number, " ")]
    found += [f"{number // 1000} thousand"] if number % 1000 == 0 else []
    found += [f"{number / 10**6:g} million"] if number % 10**4 == 0 and number >= 10**6 else []
    return found


numbers = (
    st.integers(3, 99) | st.integers(100, 9999) | st.integers(10**4, 10**8).map(lambda n: n // 10**4 * 10**4)
)


@given(numbers, numbers, st.randoms(use_true_random=False))
def test_a_number_is_its_value(number: int, other: int, rng: Random) -> None:
    one, again, different = (f"They saw {rng.choice(spellings(n))} ships." for n in (number, number, other))
    assert columns((one, again))[0]["numbers_missing"] == 0, (one, again)
    assert columns((one, different))[0]["numbers_missing"] == 2 * (number != other), (one, different)
    assert ("numbers" in signs((one, different))[0]) == (number != other)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a six-year-old boy", "a 6-year-old boy"),
        ("5km of road", "5 km of road"),
        ("It rose by 50%.", "It rose by 50 %."),
        ("nineteen eighty-four was a year", "1984 was a year"),
        ("the fourteenth row", "the 14th row"),
        ("the twenty-third row", "the 23rd row"),
        ("the fortieth row", "the 40th row"),
        ("two dozen eggs", "24 eggs"),
        ("a debt of $3bn", "a debt of 3 billion dollars"),
        ("2.5 million people", "2,500,000 people"),
        ("since the 70s", "since the 1970s"),
        ("a seven-thousand limit", "a limit of 7,000"),
        ("1\u202f000 people", "1\u00a0000 people"),
        ("5k people", "5,000 people"),
    ],
)
def test_a_number_is_known_in_what_it_is_part_of(first: str, second: str) -> None:
    assert columns((first, second), (second, first)) == [columns((first, second))[0]] * 2
    assert columns((first, second))[0]["numbers_missing"] == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("one of the dogs", "a dog"),
        ("the two of them", "both of them"),
        ("hundreds of people", "many people"),
        ("a dozen eggs", "some eggs"),
    ],
)
def test_what_need_not_be_a_number_is_not_missing(first: str, second: str) -> None:
    assert [row["numbers_missing"] for row in columns((first, second), (second, first))] == [0, 0]


@pytest.mark.parametrize("text", ["1-" * 400, "a1" * 1000, "1" * 400, "1." * 400 + "1"])
def test_any_run_of_digits_is_read(text: str) -> None:
    assert columns((f"x {text}", f"x {text}"))[0]["numbers_missing"] == 0
    assert columns((f"x {text}", "x"))[0]["numbers_missing"] == 1
