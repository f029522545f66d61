"""Numbers, by their values, that one side of a pair says and the other does not."""

from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.tokens import TokenColumn
from paraforge.corpus.scoring.meaning.numerals import (
    AND,
    COLON,
    DIGIT,
    DIGITS_2,
    DIGITS_3,
    PAIR,
    PART,
    SECOND,
)
from paraforge.corpus.scoring.meaning.sides import MOST_TOKENS
from paraforge.corpus.scoring.meaning.words import NUMBER, WordTable


def missing_numbers(first: TokenColumn, second: TokenColumn, words: WordTable) -> npt.NDArray[np.int64]:
    """Of each pair the numbers in the place of which the other side has another, how many more one side has
    alone, and how many are on one side alone, (pairs, 3).

    *One* and *two* are often no numbers; they count where they multiply or replace a number.

    first, second: at most MOST_TOKENS tokens of both sides, over one vocabulary. words: what is known of it.
    """
    found = np.zeros((len(first), 3), np.int64)
    _missing_numbers(
        first.ids, first.offsets, second.ids, second.offsets, words.properties, words.values,
        words.magnitudes, found,
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
def _numbers(words: Any, properties: Any, values: Any, magnitudes: Any, found: Any, sure: Any) -> int:
    """The numbers that a side says, and which are surely meant as numbers; gives how many."""
    count = place = 0
    while place < len(words):
        word = words[place]
        if not properties[word] & NUMBER:
            place += 1
            continue
        bare, kind = magnitudes[word] > 0, magnitudes[word]
        place += not bare
        begin = place
        if values[word] <= PAIR:
            both = PAIR - values[word]
            found[count], found[count + 1] = both // SECOND, both % SECOND
            sure[count], sure[count + 1] = True, True
            count += 2
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
        if place < len(words) and magnitudes[words[place]] == PART and kind <= DIGIT:
            current += values[words[place]]
            place += 1
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
            if magnitude > 0 and magnitude < 1000 and (current < 100 or place == begin):
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
        count += 1
    return count


@compiled
def _missing(found: Any, count: int, sure: Any, others: Any, other_count: int) -> tuple[int, int]:
    """How many numbers the other side has not: all, and those that are surely meant."""
    missing = surely = 0
    for place in range(count):
        there = repeats = 0
        for k in range(other_count):
            there += abs(others[k] - found[place]) <= 1e-9 * abs(found[place])
        for k in range(place):
            repeats += abs(found[k] - found[place]) <= 1e-9 * abs(found[place])
        if repeats >= there:
            missing += 1
            surely += sure[place]
    return missing, surely


@compiled
def _missing_numbers(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any,
    properties: Any, values: Any, magnitudes: Any, found: Any,
) -> None:  # fmt: skip
    # A token may be two numbers.
    numbers_a, numbers_b = np.empty(2 * MOST_TOKENS), np.empty(2 * MOST_TOKENS)
    sure_a, sure_b = np.empty(2 * MOST_TOKENS, np.bool_), np.empty(2 * MOST_TOKENS, np.bool_)
    for row in range(len(found)):
        a = first[first_offsets[row] : first_offsets[row + 1]]
        b = second[second_offsets[row] : second_offsets[row + 1]]
        found_a = _numbers(a, properties, values, magnitudes, numbers_a, sure_a)
        found_b = _numbers(b, properties, values, magnitudes, numbers_b, sure_b)
        if not found_a + found_b:
            continue
        missing_a, surely_a = _missing(numbers_a, found_a, sure_a, numbers_b, found_b)
        missing_b, surely_b = _missing(numbers_b, found_b, sure_b, numbers_a, found_a)
        found[row, 0] = min(missing_a, missing_b) if surely_a + surely_b else 0
        found[row, 1], found[row, 2] = abs(surely_a - surely_b), surely_a + surely_b
