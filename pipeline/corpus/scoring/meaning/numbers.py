"""Numbers, by their values, that one side of a pair says and the other does not."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.numerals import (
    AND,
    COLON,
    DATE,
    DIGIT,
    DIGITS_2,
    DIGITS_3,
    MAY_BE_MORE,
    MINUS,
    MONTH,
    ONE_OF,
    PAIR,
    PART,
    SECOND,
    SIGNED,
    SLASH,
)
from paraforge.corpus.scoring.meaning.sides import MOST_TOKENS
from paraforge.corpus.scoring.meaning.words import CLAUSE, LINK, NUMBER, WordTable

_NEGATIVE: Final = -1e-20
"""What makes a number negative: the values of tokens such as `b52` are below -1."""


def missing_numbers(
    first: TokenColumn, second: TokenColumn, numbered: npt.NDArray[np.bool_], words: WordTable
) -> npt.NDArray[np.int64]:
    """Of each pair the numbers in the place of which the other side has another, how many more one side has
    alone, and how many are on one side alone, (pairs, 3).

    *One* and *two* are often no numbers; they count where they multiply or replace a number.

    first, second: at most MOST_TOKENS tokens of both sides, over one vocabulary. numbered: whether a
    side has a number. words: what is known of words.
    """
    found = np.zeros((len(first), 3), np.int64)
    _missing_numbers(
        np.flatnonzero(numbered), first.ids, first.offsets, second.ids, second.offsets, words.properties,
        words.values, words.magnitudes, found,
    )  # fmt: skip
    return found


@compiled
def _joined(before: float, value: float) -> float:
    """What a number word makes of the words before it: seven hundred + five, twenty + one, nineteen + ninety;
    NaN where it begins another number."""
    if before % 100 == 0 and value < 100:
        return before + value
    if before % 10 == 0 and before % 100 >= 20 and 0 < value < 10:
        return before + value
    return before * 100 + value if 13 <= before <= 20 and 10 <= value < 100 else np.nan


@compiled
def _fraction(words: Any, values: Any, magnitudes: Any, place: int) -> float:
    """The value of `3 / 4` from a place on; 0 where it is none, or perhaps a date or a score."""
    if place + 2 >= len(words) or magnitudes[words[place + 1]] != SLASH:
        return 0.0
    if (place > 0 and magnitudes[words[place - 1]] == SLASH) or (
        place + 3 < len(words) and magnitudes[words[place + 3]] == SLASH
    ):
        return 0.0
    parts, whole = values[words[place]], values[words[place + 2]]
    single = magnitudes[words[place]] == DIGIT and magnitudes[words[place + 2]] == DIGIT
    return parts / whole if single and 0 < parts < whole and whole in (2, 3, 4, 8) else 0.0


@compiled
def _numbers(
    words: Any, properties: Any, values: Any, magnitudes: Any, found: Any, also: Any, sure: Any
) -> int:
    """The numbers that a side says, NaN or what each may be as well, and which are surely meant as numbers;
    gives how many."""
    count = place = 0
    month_at = -1
    while place < len(words):
        word, start = words[place], place
        if not properties[word] & NUMBER:
            place += 1
            continue
        bare, kind = magnitudes[word] > 0, magnitudes[word]
        place += not bare
        begin = place
        if bare and kind < 1:
            # `quarters` without a number before it.
            place += 1
            continue
        also[count : count + 4] = np.nan
        if values[word] <= PAIR:
            date = values[word] <= DATE
            rest, size = (DATE - values[word], 100.0) if date else (PAIR - values[word], SECOND)
            found[count], found[count + 1] = rest % size, rest // size % size
            found[count + 2] = rest // 10000
            sure[count : count + 3] = True
            count += 3 if date else 2
            continue
        total, current, largest = 0.0, 1.0 if bare else values[word], np.inf
        # Thousands may have spaces between them: 9 600.
        while (
            DIGIT >= kind >= DIGITS_3
            and current >= 1
            and place < len(words)
            and magnitudes[words[place]] == DIGITS_3
        ):
            current = 1000 * current + values[words[place]]
            place += 1
        # 2 1/2, or 1/2.
        behind = _fraction(words, values, magnitudes, place) if kind <= DIGIT else 0.0
        itself = _fraction(words, values, magnitudes, start)
        if place < len(words) and magnitudes[words[place]] == PART and kind <= DIGIT:
            current += values[words[place]]
            place += 1
        elif behind > 0:
            current += behind
            place += 3
        elif itself > 0:
            current = itself
            place = start + 3
        # 20:30 is half past eight; the minutes of 20:00 are not said.
        if (
            DIGIT >= kind >= DIGITS_2
            and current <= 24
            and place + 1 < len(words)
            and magnitudes[words[place]] == COLON
            and magnitudes[words[place + 1]] == DIGITS_2
            and values[words[place + 1]] % 5 == 0
            and values[words[place + 1]] < 60
        ):
            current -= 12 if current > 12 else 0
            place += 2 if values[words[place + 1]] == 0 else 1
        while place < len(words):
            magnitude, value = magnitudes[words[place]], values[words[place]]
            ended = current == 0 and total > 0
            if (
                magnitude == AND
                and place + 1 < len(words)
                and magnitudes[words[place + 1]] == 0
                and (ended or (current > 0 and current % 100 == 0))
            ):
                place, magnitude, value = place + 1, 0.0, values[words[place + 1]]
                if not value < 100:
                    place -= 1
                    break
            if 0 < magnitude < 1 and current * magnitude >= 1:
                # The four quarters of a town.
                break
            if place == begin and kind == 0 and current == 1 and magnitude == 0 and 3 <= value <= 10:
                # One third, or a third; nobody says one three.
                current, kind = 1 / value, ONE_OF
            elif magnitude > 0 and magnitude < 1000 and (current < 100 or place == begin):
                current *= magnitude
            elif magnitude >= 1000 and magnitude < largest and current > 0:
                total, current, largest = total + current * magnitude, 0.0, magnitude
            elif magnitude < 0 and magnitude != AND and ended and value < largest:
                current = value
            elif (
                magnitude == 0
                and (ended or (kind >= 0 and current > 0))
                and not np.isnan(_joined(current, value))
            ):
                current = _joined(current, value)
            else:
                break
            bare = bare and magnitude > 0
            place += 1
        alone = place == begin and (current == 1 or current == 2 or magnitudes[word] == PART)
        found[count], sure[count] = total + current, not (bare or alone)
        before = magnitudes[words[start - 1]] if start else 0.0
        ranged = start > 1 and properties[words[start - 2]] & NUMBER
        if kind == ONE_OF:
            also[count] = 1 / found[count]
        elif kind <= MAY_BE_MORE and place == begin:
            also[count] = found[count] * 1000.0 ** (MAY_BE_MORE - kind)
        elif kind == SIGNED and (not start or properties[words[start - 1]] & CLAUSE):
            # A dash that begins what somebody says.
            also[count] = _NEGATIVE * found[count]
        elif (before == MINUS and not ranged) or (
            kind == SIGNED and not properties[words[start - 1]] & NUMBER
        ):
            found[count] *= _NEGATIVE
        count += 1
        # The month of a day or of a year, once.
        linked = place + 1 < len(words) and properties[words[place]] & LINK > 0
        for there in (start - 1, place + linked):
            if month_at < there < len(words) and magnitudes[words[there]] <= MONTH:
                found[count], also[count], sure[count] = MONTH - magnitudes[words[there]], np.nan, False
                month_at = there
                count += 1
    return count


@compiled
def _equal(one: float, one_also: float, other: float, other_also: float) -> bool:
    """Whether two numbers may be the same."""
    return (
        abs(one - other) <= 1e-9 * abs(one)
        or abs(one_also - other) <= 1e-9 * abs(other)
        or abs(one - other_also) <= 1e-9 * abs(one)
        or abs(one_also - other_also) <= 1e-9 * abs(one_also)
    )


@compiled
def _missing(
    found: Any, also: Any, count: int, sure: Any, others: Any, others_also: Any, other_count: int
) -> tuple[int, int]:
    """How many numbers the other side has not: all, and those that are surely meant."""
    missing = surely = 0
    for place in range(count):
        there = repeats = 0
        for k in range(other_count):
            there += _equal(found[place], also[place], others[k], others_also[k])
        for k in range(place):
            repeats += _equal(found[place], also[place], found[k], also[k])
        if repeats >= there:
            missing += 1
            surely += sure[place]
    return missing, surely


@compiled
def _missing_numbers(
    rows: Any, first: Any, first_offsets: Any, second: Any, second_offsets: Any,
    properties: Any, values: Any, magnitudes: Any, found: Any,
) -> None:  # fmt: skip
    # A token may be three numbers.
    (numbers_a, also_a), (numbers_b, also_b) = np.empty((2, 2, 4 * MOST_TOKENS))
    sure_a, sure_b = np.empty((2, 4 * MOST_TOKENS), np.bool_)
    for row in rows:
        a = first[first_offsets[row] : first_offsets[row + 1]]
        b = second[second_offsets[row] : second_offsets[row + 1]]
        found_a = _numbers(a, properties, values, magnitudes, numbers_a, also_a, sure_a)
        found_b = _numbers(b, properties, values, magnitudes, numbers_b, also_b, sure_b)
        missing_a, surely_a = _missing(numbers_a, also_a, found_a, sure_a, numbers_b, also_b, found_b)
        missing_b, surely_b = _missing(numbers_b, also_b, found_b, sure_b, numbers_a, also_a, found_a)
        found[row, 0] = min(missing_a, missing_b) if surely_a + surely_b else 0
        found[row, 1], found[row, 2] = abs(surely_a - surely_b), surely_a + surely_b
