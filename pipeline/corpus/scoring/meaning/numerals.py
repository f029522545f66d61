"""The value of a token that is a number: in digits, in English words, ordinal or not."""

from __future__ import annotations

import math
import re
from typing import Final

_UNITS: Final = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS: Final = str.split("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS: Final = {
    "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "twentieth": 20, "thirtieth": 30,
}  # fmt: skip
MAGNITUDES: Final = {"hundred": 1e2, "dozen": 12, "thousand": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9,
                     "trillion": 1e12}  # fmt: skip
"""Words that multiply the number before them."""
_WORDS: Final = {
    **{word: float(value) for value, word in enumerate(_UNITS)},
    **{word: 10.0 * (2 + place) for place, word in enumerate(_TENS)},
    **{f"{ten}-{one}": 10.0 * (2 + place) + value for place, ten in enumerate(_TENS)
       for value, one in enumerate(_UNITS[1:10], start=1)},
    **{word: float(value) for word, value in _ORDINALS.items()},
    "twice": 2.0,
    "nought": 0.0,
}  # fmt: skip
_GROUPED: Final = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_PLAIN: Final = re.compile(r"(\d+)(?:[.,](\d+))?(st|nd|rd|th|s|%)?")


def value_of(token: str) -> float:
    """The number that a lower-cased token says; NaN where it says none.

    `five` and `5th` are 5, `1,000` is 1000, `2.5` and `2,5` are 2.5; 1990s is 1990. A token with digits that
    is no number (`10:30`, `b52`) has a value that no number has, the same for the same token.
    """
    if token in _WORDS:
        return _WORDS[token]
    if not any(character.isdecimal() for character in token):
        return math.nan
    if _GROUPED.fullmatch(token):
        return float(token.replace(",", ""))
    plain = _PLAIN.fullmatch(token)
    if plain:
        return float(f"{int(plain[1][:300])}.{plain[2] or 0}")
    # Digits alone decide, so that 10.30-11 and 10:30-11 are the same.
    digits = "".join(character if character.isdecimal() else " " for character in token).split()
    return -1.0 - sum(float(part[:15]) * 7.0**place for place, part in enumerate(digits))
