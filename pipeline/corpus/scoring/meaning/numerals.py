"""The number that a token says."""

import math
import re
import unicodedata
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
                     "trillion": 1e12, "mn": 1e6, "tn": 1e12, "lakh": 1e5, "crore": 1e7}  # fmt: skip
"""Words that multiply the number before them."""
AND, DIGIT, DIGITS_2, DIGITS_3, DIGITS, COLON, PART, SLASH, MINUS, SIGNED, ONE_OF, MAY_BE_MORE = (
    -1.0 - place for place in range(12)
)
"""In place of a magnitude: the word *and*; one digit; two, which may end `9:30`; three, which may end
`9 600`; others; a colon; a sign such as ½; a slash; a minus; digits behind a hyphen; `one-third`, which may
be `a third`; less its power, what may be a power of a thousand as many: -1 of `5k` and `1.500`, -2 of `5m`,
-3 of `5b`."""
MONTH: Final = -20.0
"""Less its number, in place of a month's magnitude."""
DATE: Final = -1e15
"""Minus year, month and day, two digits each of these, of `3.5.2010` and `2010-05-03`."""
PAIR: Final = -1e14
"""Minus the values of `40-70` and others of two numbers: see :func:`value_of`."""
SECOND: Final = 1e7
"""What the first of two numbers is multiplied with."""
_WORDS: Final = {
    **{word: float(value) for word, value in _SMALL.items() if word != "first"},
    **{word: 20.0 + 10 * place for place, word in enumerate(_TENS)},
    **{f"{word[:-1]}ieth": 20.0 + 10 * place for place, word in enumerate(_TENS)},
    **{f"{ten}-{word}": 20.0 + 10 * place + value for place, ten in enumerate(_TENS)
       for word, value in _SMALL.items() if 0 < value < 10},
    "twice": 2.0,
    "nought": 0.0,
}  # fmt: skip
_DIGITS: Final = re.compile(r"(\d{1,3}(?:,\d{2,3})*,\d{3}|\d+)(?:[.,](\d+))?(%|(?:-?[^\W\d_]+)*)")
# Points between thousands where nothing else can be meant: 1.000,5 and 1.000.000.
_POINTS: Final = re.compile(r"(\d{1,3}(?:\.\d{3})+),(\d+)|(\d{1,3}(?:\.\d{3}){2,})")
_TWO: Final = re.compile(r"(\d{1,7})[-:/](\d{1,7})(?:-?[^\W\d_]+)*|(\d\d?)\.(\d\d)[ap]m")
_DATE: Final = re.compile(r"(\d\d?)([.-])(\d\d?)\2(\d{4})|(\d{4})-(\d\d)-(\d\d)")
_MAY_BE_MORE: Final = re.compile(r"[\d.,]*\d([kmb])|\d{1,3}\.\d{3}")
_MONTHS: Final = {
    name: month
    for month, names in enumerate(
        str.split("january,jan february,feb march,mar april,apr may june,jun july,jul august,aug "
                  "september,sep,sept october,oct november,nov december,dec"), start=1
    )
    for name in names.split(",")
}  # fmt: skip
_FRACTIONS: Final = {"third": 1 / 3, "quarter": 1 / 4, "fifth": 1 / 5, "eighth": 1 / 8, "tenth": 1 / 10}
_SIGNS: Final = {"and": AND, ":": COLON, "/": SLASH, "⁄": SLASH, "−": MINUS, "minus": MINUS}
_DECADE: Final = re.compile(r"\d0s")


def value_of(token: str) -> float:
    """The number that a lower-cased token says; NaN where it says none.

    `five` and `5th` are 5, `1,000` and `1.000,0` are 1000, `2.5` and `2,5` are 2.5; 1990s and 90s are 1990,
    `seven-thousand` is 7000; `6-year-old`, `5km` and `six-year-old` are what they begin with. `40-70` and
    `9.30am` are two numbers, PAIR - SECOND * the first - the second, and `3.5.2010` three, as DATE says. A
    token with digits that is no number (`b52`) has a value that no number has, the same for the same token.
    A sign counts for nothing here: dashes look like it.
    """
    token = token.lstrip("-+")
    if token in _WORDS:
        return _WORDS[token]
    if not any(character.isdecimal() for character in token):
        if magnitude_of(token) == PART:
            return unicodedata.numeric(token)
        parts = token.split("-")
        sizes = range(len(parts) - 1, 0, -1)
        size = next((size for size in sizes if "-".join(parts[:size]) in _WORDS), 0)
        if not size:
            return math.nan
        times = _FRACTIONS[parts[1]] if magnitude_of(token) == ONE_OF else magnitude_of(parts[size])
        return _WORDS["-".join(parts[:size])] * (times if times > 0 else 1)
    if _DECADE.fullmatch(token):
        return 1900.0 + int(token[:-1])
    points = _POINTS.fullmatch(token)
    if points:
        token = (points[1] or points[3]).replace(".", "") + "." + (points[2] or "0")
    found = _DIGITS.fullmatch(token)
    date = _DATE.fullmatch(token)
    if date:
        year, month, day = (
            int(part) for part in ((date[4], date[3], date[1]) if date[4] else date.groups()[4:])
        )
        return DATE - 10000 * year - 100 * month - day
    two = _TWO.fullmatch(token)
    if two:
        first, second = (int(part) for part in two.groups() if part is not None)
        return float(first) if two[3] and not second else PAIR - SECOND * first - second
    if found:
        whole = found[1].replace(",", "")[:300]
        times = magnitude_of(found[3].removeprefix("-").partition("-")[0])
        return float(f"{int(whole)}.{found[2] or 0}") * max(times, 1)
    # Digits alone decide, so that 10.30-11 and 10:30-11 are the same.
    digits = "".join(character if character.isdecimal() else " " for character in token).split()
    return -1.0 - sum(float(part[:15]) * 7.0**place for place, part in enumerate(digits)) % 1e13


def magnitude_of(word: str) -> float:
    """What a lower-cased word multiplies the number before it with, or AND, DIGIT and the others; 0 for any
    other."""
    if word.isdecimal() and len(word) < 4:
        return (DIGIT, DIGITS_2, DIGITS_3)[len(word) - 1]
    if any(character.isdecimal() for character in word):
        more = _MAY_BE_MORE.fullmatch(word)
        if more:
            return MAY_BE_MORE - ("kmb".index(more[1]) + 1 if more[1] else 1)
        return SIGNED if word[0] == "-" else DIGITS
    if word in _SIGNS:
        return _SIGNS[word]
    if word in _MONTHS:
        return MONTH - _MONTHS[word]
    if len(word) == 1 and 0 < unicodedata.numeric(word, 0) < 1:
        return PART
    if word.startswith("one-") and word[4:] in _FRACTIONS:
        return ONE_OF
    one = word.removesuffix("s")
    return _FRACTIONS[one] if one in _FRACTIONS and one != word else MAGNITUDES.get(one, 0.0)
