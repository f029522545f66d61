"""The number that a token says."""

import math
import re
from typing import Final

_UNITS: Final = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS: Final = str.split("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS: Final = {
    "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12,
    **{f"{_UNITS[value]}th": value for value in (4, 6, 7, 10, 11, *range(13, 20))},
}  # fmt: skip
_SMALL: Final = {**dict(zip(_UNITS, range(20), strict=True)), "first": 1, **_ORDINALS}
MAGNITUDES: Final = {"hundred": 1e2, "dozen": 12, "thousand": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9,
                     "trillion": 1e12}  # fmt: skip
"""Words that multiply the number before them."""
AND, FEW_DIGITS, DIGITS_3, DIGITS = -1.0, -2.0, -3.0, -4.0
"""In place of a magnitude: the word *and*; one or two digits; three, which may end `9 600`; others."""
_WORDS: Final = {
    **{word: float(value) for word, value in _SMALL.items() if word != "first"},
    **{word: 20.0 + 10 * place for place, word in enumerate(_TENS)},
    **{f"{word[:-1]}ieth": 20.0 + 10 * place for place, word in enumerate(_TENS)},
    **{f"{ten}-{word}": 20.0 + 10 * place + value for place, ten in enumerate(_TENS)
       for word, value in _SMALL.items() if 0 < value < 10},
    "twice": 2.0,
    "nought": 0.0,
}  # fmt: skip
_DIGITS: Final = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)(?:[.,](\d+))?(%|(?:-?[^\W\d_]+)*)")


def value_of(token: str) -> float:
    """The number that a lower-cased token says; NaN where it says none.

    `five` and `5th` are 5, `1,000` is 1000, `2.5` and `2,5` are 2.5; 1990s is 1990, `6-year-old`, `5km` and
    `six-year-old` are what they begin with. A token with digits that is no number (`10:30`, `b52`) has a
    value that no number has, the same for the same token.
    """
    if token in _WORDS:
        return _WORDS[token]
    if not any(character.isdecimal() for character in token):
        parts = token.split("-")
        heads = ("-".join(parts[:size]) for size in range(len(parts) - 1, 0, -1))
        return next((_WORDS[head] for head in heads if head in _WORDS), math.nan)
    found = _DIGITS.fullmatch(token)
    if found:
        whole = found[1].replace(",", "")[:300]
        return float(f"{int(whole)}.{found[2] or 0}") * (1e9 if found[3] == "bn" else 1)
    # Digits alone decide, so that 10.30-11 and 10:30-11 are the same.
    digits = "".join(character if character.isdecimal() else " " for character in token).split()
    return -1.0 - sum(float(part[:15]) * 7.0**place for place, part in enumerate(digits))


def magnitude_of(word: str) -> float:
    """What a lower-cased word multiplies the number before it with, or AND, FEW_DIGITS, DIGITS_3, DIGITS; 0
    for any other."""
    if word.isdecimal() and len(word) < 4:
        return DIGITS_3 if len(word) == 3 else FEW_DIGITS
    if any(character.isdecimal() for character in word):
        return DIGITS
    return AND if word == "and" else MAGNITUDES.get(word.removesuffix("s"), 0.0)
