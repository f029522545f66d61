"""Numbers of both sides against what a reader counts, however they are written."""

import datetime
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
    assert ("numbers_replaced" in signs((one, different))[0]) == (number != other)


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
        ("They won 2:1.", "They won 2-1."),
        ("40–70 % of them", "40-70% of them"),
        ("at 12.30pm", "at 12:30 p.m."),
        ("after 23:00", "after 11 p.m."),
        ("since the 70s", "since the 1970s"),
        ("a seven-thousand limit", "a limit of 7,000"),
        ("an eight-billion-crown loan", "a loan of 8 billion crowns"),
        ("2½ hours", "2.5 hours"),
        ("1.000,5 km", "1,000.5 km"),
        ("1.000.000 people", "a million people"),
        ("1\u202f000 people", "1\u00a0000 people"),
        ("٣٤ people", "34 people"),
        ("−5 degrees", "-5 degrees"),
        ("It was minus five.", "It was -5."),
        ("3/4 of the cake", "¾ of the cake"),
        ("three quarters of them", "3/4 of them"),
        ("one-third of them", "a third of them"),
        ("one third of them", "⅓ of them"),
        ("2 1/2 hours", "2.5 hours"),
        ("He scored 3/5.", "He scored 3 out of 5."),
        ("It cost $1.5m.", "It cost $1.5 million."),
        ("a debt of £2bn", "a debt of 2 billion pounds"),
        ("5k people", "5,000 people"),
        ("1.5M people", "1.5 million people"),
        ("1.5m tall", "1.5 m tall"),
        ("1.500 people", "1,500 people"),
        ("pages 3 -5", "pages 3-5"),
        ("-5 minutes.", "5 minutes."),
    ],
)
def test_a_number_is_known_in_what_it_is_part_of(first: str, second: str) -> None:
    assert columns((first, second), (second, first)) == [columns((first, second))[0]] * 2
    assert columns((first, second))[0]["numbers_missing"] == 0


FRACTIONS = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8",
    "⅞": "7/8",
}  # fmt: skip


@given(st.sampled_from(sorted(FRACTIONS)), st.sampled_from(sorted(FRACTIONS)), st.sampled_from(["", "3 "]))
def test_fractions_are_equal_as_their_values_are(sign: str, other: str, before: str) -> None:
    one, two = (f"It was {before}{written} hours." for written in (sign, FRACTIONS[other]))
    assert (columns((one, two))[0]["numbers_missing"] == 0) == (sign == other)


dates = st.dates(datetime.date(1000, 1, 1))


@given(dates, dates, st.data())
def test_a_date_is_the_same_in_any_order(
    date: datetime.date, other: datetime.date, data: st.DataObject
) -> None:
    """Day and month are told apart only where the month is a word."""
    day, month, year = date.day, date.month, date.year
    name = "January February March April May June July August September October November December"
    word = name.split()[month - 1]
    one, two = (
        data.draw(
            st.sampled_from(
                [
                    f"{day} {word} {year}", f"{word} {day}, {year}", f"the {day}th of {word} {year}",
                    f"{day}.{month}.{year}", f"{day:02}.{month:02}.{year}", f"{day}/{month}/{year}",
                    f"{month}/{day}/{year}", date.isoformat(), f"{day}-{month}-{year}",
                    f"{word[:3]} {day} {year}",
                ]
            )
        )
        for _ in range(2)
    )  # fmt: skip
    assert columns((f"It began on {one}.", f"It began on {two}."))[0]["numbers_missing"] == 0
    different = columns((f"It began on {one}.", f"It began on {other.day}.{other.month}.{other.year}."))[0]
    same = sorted((day, month, year)) == sorted((other.day, other.month, other.year))
    assert (different["numbers_missing"] == 0) == same


@given(st.integers(3, 10**6), st.sampled_from(["-{}", "−{}", "minus {}"]), st.booleans())
def test_a_minus_before_a_number_is_part_of_it(number: int, written: str, spelled_out: bool) -> None:
    negative = written.format(spelled(number) if spelled_out and written[0] == "m" else number)
    pairs = [("It was {}.", 2), ("pages five {}", 0)]
    for frame, missing in pairs:
        one, other = frame.format(negative), frame.format(number)
        assert columns((one, other))[0]["numbers_missing"] == missing
        assert columns((one, frame.format(f"-{number}")))[0]["numbers_missing"] == 0


@given(
    st.integers(3, 999),
    st.sampled_from(["k", "m", "bn"]),
    st.sampled_from(["thousand", "million", "billion"]),
)
def test_a_letter_may_say_how_many_thousand_times(number: int, letter: str, word: str) -> None:
    found = columns((f"It cost ${number}{letter}.", f"It cost ${number} {word}."))[0]["numbers_missing"]
    assert (found == 0) == (letter[0] == word[0] or (letter, word) == ("k", "thousand"))
