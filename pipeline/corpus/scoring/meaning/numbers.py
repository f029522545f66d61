"""Reads numbers by their values, and finds numbers that only one side of a pair has."""

import math
import re
from typing import Any, Final

import numpy as np

from paraforge.base.compiled import compiled

_UNITS: Final = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS: Final = str.split("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS: Final = {
    "first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12,
    **{f"{_UNITS[value]}th": value for value in (4, 6, 7, 10, 11, *range(13, 20))},
}  # fmt: skip
_WORDS: Final = {
    **{word: float(value) for value, word in enumerate(_UNITS)},
    **{word: float(value) for word, value in _ORDINALS.items()},
    **{word: 20.0 + 10 * place for place, word in enumerate(_TENS)},
    **{f"{word[:-1]}ieth": 20.0 + 10 * place for place, word in enumerate(_TENS)},
    **{f"{ten}-{word}": 20.0 + 10 * place + value for place, ten in enumerate(_TENS)
       for value, word in enumerate(_UNITS[:10]) if value},
    **{f"{ten}-{word}": 20.0 + 10 * place + value for place, ten in enumerate(_TENS)
       for word, value in _ORDINALS.items() if value < 10},
    "twice": 2.0,
}  # fmt: skip
_MAGNITUDES: Final = {"hundred": 1e2, "dozen": 12.0, "thousand": 1e3, "million": 1e6, "billion": 1e9,
                      "bn": 1e9, "trillion": 1e12, "lakh": 1e5, "crore": 1e7}  # fmt: skip
AND, DIGITS, THREE_DIGITS = -1.0, -2.0, -3.0
"""Special magnitudes: the word *and*; digits; exactly three digits, which may end `9 600`."""
_SUFFIXES: Final = {**_MAGNITUDES, "k": 1e3}
_MULTIPLIERS: Final = {**_MAGNITUDES, "and": AND}
_DIGITS: Final = re.compile(r"(\d{1,3}(?:,\d{2,3})*,\d{3}|\d+)(?:[.,](\d+))?(%|(?:-?[^\W\d_]+)*)")
_DECADE: Final = re.compile(r"\d0s")


def number_of(token: str) -> tuple[float, float]:
    """Return the value of a lower-cased token, NaN if it is not a number, and the magnitude by which it
    multiplies the number before it: 0 for none, or AND, DIGITS or THREE_DIGITS.

    `five` and `5th` are 5, `1,000` is 1000, `2.5` and `2,5` are 2.5, 1990s and 90s are 1990, `6-year-old`,
    `5km` and `six-year-old` have the value that they begin with. A token with digits that is not a number
    (`b52`, `3.5.2010`) has a negative value, the same for the same digits.
    """
    if token in _WORDS:
        return _WORDS[token], 0.0
    if token.isalpha():  # most words
        return math.nan, _MULTIPLIERS.get(token.removesuffix("s"), 0.0)
    token = token.lstrip("-+")
    if not any(character.isdecimal() for character in token):
        first, _, rest = token.partition("-")
        if rest and first in _WORDS:
            return _WORDS[first] * _MAGNITUDES.get(rest.partition("-")[0], 1.0), 0.0
        return math.nan, _MULTIPLIERS.get(token.removesuffix("s"), 0.0)
    if _DECADE.fullmatch(token):
        return 1900.0 + int(token[:-1]), DIGITS
    found = _DIGITS.fullmatch(token)
    if found:
        times = _SUFFIXES.get(found[3].removeprefix("-"), 1.0)
        value = float(f"{int(found[1].replace(',', '')[:300])}.{found[2] or 0}") * times
        return value, THREE_DIGITS if token.isdecimal() and len(token) == 3 else DIGITS
    digits = "".join(character if character.isdecimal() else " " for character in token).split()
    return -1.0 - sum(float(part[:15]) * 7.0**place for place, part in enumerate(digits[:300])) % 1e13, DIGITS


@compiled
def said_numbers(words: Any, values: Any, magnitudes: Any, found: Any, sure: Any) -> int:
    """Write the numbers of a side, and whether each is certainly a number (*one*, *two*, *first*
    and *second* alone often are not, nor is `hundreds`). Returns the count of numbers."""
    count = place = 0
    while place < len(words):
        value, kind = values[words[place]], magnitudes[words[place]]
        bare = np.isnan(value)
        if bare and kind <= 0:
            place += 1
            continue
        total, current, kind = 0.0, 1.0 if bare else value, 0.0 if bare else kind
        place += not bare
        begin = place
        while place < len(words):
            value, magnitude = values[words[place]], magnitudes[words[place]]
            joins = kind == 0 and magnitude == 0 and value == value
            thousands = place == begin and 1 <= current < 1000
            thousands = thousands or magnitudes[words[place - 1]] == THREE_DIGITS
            if magnitude == THREE_DIGITS and kind < AND and thousands:
                current = 1000 * current + value
            elif magnitude == AND and place + 1 < len(words) and (current + total) % 100 == 0:
                following = values[words[place + 1]]
                if not (kind == 0 and following < 100 and (current > 0 or total > 0)):
                    break
                current, place = current + following, place + 1
            elif 0 < magnitude < 1000 and current < 100:
                current *= magnitude
            elif magnitude >= 1000 and current > 0:
                total, current, kind = total + current * magnitude, 0.0, 0.0
            elif (joins and current % 100 == 0 and value < 100) or (
                joins and current % 10 == 0 and current % 100 >= 20 and 0 < value < 10
            ):
                current += value
            elif joins and 13 <= current <= 20 and 10 <= value < 100:
                current = 100 * current + value
            else:
                break
            bare = bare and magnitude > 0
            place += 1
        found[count] = total + current
        sure[count] = not (bare or (place == begin and kind == 0 and 1 <= current <= 2))
        count += 1
    return count


@compiled
def missing_numbers(found: Any, sure: Any, others: Any) -> int:
    """Return how many certain numbers of one side the other side lacks."""
    missing = 0
    for place in range(len(found)):
        there = 0
        for k in range(len(others)):
            there += abs(found[place] - others[k]) <= 1e-9 * abs(found[place])
        for k in range(place):
            there -= abs(found[place] - found[k]) <= 1e-9 * abs(found[place])
        missing += there <= 0 and sure[place]
    return missing
