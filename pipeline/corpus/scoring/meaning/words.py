"""Finds the properties of each word (stem, negation, person, antonyms, value if it is a number), and the
numbers that only one side of a pair has."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import offsets_of

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
    match = _DIGITS.fullmatch(token)
    if match:
        times = _SUFFIXES.get(match[3].removeprefix("-"), 1.0)
        value = float(f"{int(match[1].replace(',', '')[:300])}.{match[2] or 0}") * times
        return value, THREE_DIGITS if token.isdecimal() and len(token) == 3 else DIGITS
    digits = "".join(character if character.isdecimal() else " " for character in token).split()
    return -1.0 - sum(float(part[:15]) * 7.0**place for place, part in enumerate(digits[:300])) % 1e13, DIGITS


@compiled
def said_numbers(words: Any, values: Any, magnitudes: Any, numbers: Any, sure: Any) -> int:
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
        numbers[count] = total + current
        sure[count] = not (bare or (place == begin and kind == 0 and 1 <= current <= 2))
        count += 1
    return count


@compiled
def missing_numbers(numbers: Any, sure: Any, others: Any) -> int:
    """Return how many certain numbers of one side the other side lacks."""
    missing = 0
    for place in range(len(numbers)):
        surplus = 0
        for k in range(len(others)):
            surplus += abs(numbers[place] - others[k]) <= 1e-9 * abs(numbers[place])
        for k in range(place):
            surplus -= abs(numbers[place] - numbers[k]) <= 1e-9 * abs(numbers[place])
        missing += surplus <= 0 and sure[place]
    return missing


ANTONYMS: Final = Path(__file__).parent / "antonyms.txt"
CONTENT, NEGATION, DENIAL, AFFIXED, CLAUSE, NUMBER = (1 << place for place in range(6))
"""Properties of a word: content word; negation; denial without a negation (`fail`, `few`); negated by an
affix; end of a clause; part of a number."""

WORDS: Final = Path(__file__).parent / "english.txt"


def _lists() -> dict[str, list[str]]:
    lines = WORDS.read_text(encoding="utf-8").split("\n")
    named = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {name: words.split(" ") for name, _, words in named}


_LISTS: Final = _lists()
NEGATIONS, _DENIALS, _CLAUSES, _AFFIXED, _NOT_AFFIXED = (
    frozenset(_LISTS[name]) for name in ("negations", "denials", "clauses", "affixed", "not affixed")
)
PERSONS: Final = {word: person for person in range(1, 7) for word in _LISTS[f"person {person}"]}
"""The person of a pronoun, 1 to 6: I, we, you, he, she, they."""
_FUNCTION: Final = frozenset(_LISTS["links"]) | NEGATIONS | frozenset(_LISTS["function"]) | PERSONS.keys()
_IRREGULAR: Final = dict(pair.split("=") for pair in _LISTS["irregular"])
_INFLEXIONS: Final = ("ingly", "edly", "ing", "ed", "ly")
_VOWELS: Final = frozenset("aeiouy")
_PREFIXES: Final = ("un", "in", "im", "il", "ir", "dis", "non-", "non")
_KINDS: Final = (np.uint32, np.int32, np.uint8, np.float64, np.int8, np.float64, np.int32)
# A shard has some 30,000 words.
_MOST_WORDS: Final = 500_000

APOSTROPHES: Final = ("'", "’", "‘", "ʼ")
ENDINGS: Final = ("t", "s", "m", "d", "re", "ve", "ll")
"""Contractions: what comes before an ending, and the endings."""
NUMBER_SIGN: Final = "no."
ANSWER: Final = "no,"
"""An answer, which negates nothing after it: `No, I do.`"""


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a lower-cased word: equal for most forms of one word, different for most other
    words."""
    word = _IRREGULAR.get(word, word)
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word.endswith(_INFLEXIONS):
        for ending in _INFLEXIONS:
            rest = word[: -len(ending)]
            if word.endswith(ending) and len(rest) > 2 and not _VOWELS.isdisjoint(rest):
                word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
                break
    if word.endswith("ied"):
        word = word[:-3] + "y"
    return (
        word[:-1] if word.endswith("e") and len(word) > 3 else word[:-1] + "y" if word.endswith("i") else word
    )


def antonym_pairs(near: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `antonyms.txt`. near: include pairs of words that are similar to an antonym."""
    for line in ANTONYMS.read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("#"):
            direct, _, similar = line.partition("/")
            first, *others = direct.split()
            yield from ((first, other) for other in [*others, *(similar.split() if near else [])])


@lru_cache(maxsize=1)
def antonyms() -> dict[str, frozenset[str]]:
    """Return the antonyms' stems for each stem that has some."""
    antonyms_of: dict[str, set[str]] = {}
    for pair in antonym_pairs():
        first, second = map(stem, pair)
        if first != second:
            antonyms_of.setdefault(first, set()).add(second)
            antonyms_of.setdefault(second, set()).add(first)
    return {word: frozenset(others) for word, others in antonyms_of.items()}


@lru_cache(maxsize=1)
def _numbered_antonyms() -> tuple[dict[str, int], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the number of each stem that has antonyms, then `opposed` and its offsets as in WordTable."""
    opposed = antonyms()
    stems = {word: number for number, word in enumerate(sorted(opposed))}
    numbers = [sorted(stems[other] for other in opposed[word]) for word in stems]
    flat = np.array([number for others in numbers for number in others], np.int32)
    return stems, flat, offsets_of(np.array([len(others) for others in numbers], np.int64))


def without_affix(word: str) -> str | None:
    """Return the word without a negative affix, which need not be a word: `happy` for `unhappy`, `careful`
    for `careless`; None without such an affix."""
    if word.startswith(_PREFIXES):
        for prefix in _PREFIXES:
            if word.startswith(prefix) and len(word) > len(prefix) + 2:
                return word[len(prefix) :]
    return word[:-4] + "ful" if word.endswith("less") and len(word) > 6 else None


def negated_by_affix(word: str) -> bool:
    """Return whether a word has a real negative affix, like `unhappy` and unlike `uncle`."""
    rest = without_affix(word)
    if rest is None or stem(word) in _NOT_AFFIXED:
        return False
    if stem(word) in _AFFIXED or word.startswith("non-"):
        return True
    if word.startswith(("in", "im", "il", "ir")):
        return stem(rest) in antonyms().get(stem(word), frozenset())
    return stem(rest) in antonyms()


def _about(word: str) -> tuple[int, float, int, float]:
    """Return a word's properties, number, person and magnitude."""
    # `no. 5` is number 5.
    word = word if word == NUMBER_SIGN else word.rstrip(".") or word
    value, magnitude = number_of(word)
    letters = word.isalpha() or any(character.isalnum() for character in word)
    properties = CONTENT * (letters and word not in _FUNCTION)
    properties |= NEGATION * (word in NEGATIONS) | DENIAL * (stem(word) in _DENIALS or word in _DENIALS)
    properties |= AFFIXED * negated_by_affix(word) | CLAUSE * (word in _CLAUSES)
    properties |= NUMBER * (value == value or magnitude > 0)
    return properties, value, PERSONS.get(word, 0), magnitude


class WordTable(NamedTuple):
    """The properties of each word of a vocabulary, in arrays of its length.

    keys: hash of the word's stem, the same in each vocabulary. stems: number of the stem. properties: flags.
    values: value of a number, NaN for other words. persons: 0 to 6.
    magnitudes: see :func:`~paraforge.corpus.scoring.meaning.words.number_of`.
    bases: number of the stem without its negative affix, -1 for none.
    opposed, opposed_offsets: numbers of the antonyms' stems for each of the first stems, in order; stems with
        higher numbers have none.
    """

    keys: npt.NDArray[np.uint32]
    stems: npt.NDArray[np.int32]
    properties: npt.NDArray[np.uint8]
    values: npt.NDArray[np.float64]
    persons: npt.NDArray[np.int8]
    magnitudes: npt.NDArray[np.float64]
    bases: npt.NDArray[np.int32]
    opposed: npt.NDArray[np.int32]
    opposed_offsets: npt.NDArray[np.int64]


class WordBook:
    """Looks up words and caches them, because the next shard repeats most of them.

    Its first rows are the apostrophes, the endings, the endings with an apostrophe, `no`, `.`, `no.` and
    `no,`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        stems, self._opposed, self._offsets = _numbered_antonyms()
        self._stems = dict(stems)
        self._rows: dict[str, int] = {}
        self._known: list[npt.NDArray[Any]] = [np.zeros(0, kind) for kind in _KINDS]
        joined = [f"'{ending}" for ending in ENDINGS]
        self._learn([*APOSTROPHES, *ENDINGS, *joined, "no", ".", NUMBER_SIGN, ANSWER])

    def numbered(self, vocabulary: Sequence[str]) -> tuple[npt.NDArray[np.int32], WordTable]:
        """Return the row of each lower-cased token, (tokens,), and the properties of all words asked for so
        far."""
        with self._lock:
            if len(self._known[0]) > _MOST_WORDS:
                self._forget()
            new = list(dict.fromkeys(word for word in vocabulary if word not in self._rows))
            if new:
                self._learn(new)
            rows = np.fromiter(map(self._rows.__getitem__, vocabulary), np.int32, len(vocabulary))
            return rows, WordTable._make([*self._known, self._opposed, self._offsets])

    def _learn(self, words: Sequence[str]) -> None:
        """Add distinct unknown words."""
        rows = []
        for word in words:
            self._rows[word] = len(self._rows)
            rest = without_affix(word)
            base = -1 if rest is None else self._number(rest)
            key = crc32(stem(word).encode("utf-8", "surrogatepass"))
            properties, value, person, magnitude = _about(word)
            rows.append((key, self._number(word), properties, value, person, magnitude, base))
        columns = zip(*rows, strict=True)
        self._known = [
            np.concatenate([known, np.array(column, known.dtype)])
            for known, column in zip(self._known, columns, strict=True)
        ]

    def _number(self, word: str) -> int:
        return self._stems.setdefault(stem(word), len(self._stems))
