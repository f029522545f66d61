"""What is known of each word of a vocabulary: its stem, what it negates, whom it points to, its antonyms,
its value where it is a number, and its direction."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from paraforge.base.text.ragged import offsets_of
from paraforge.base.text.word_numbers import WordNumbers
from paraforge.corpus.scoring.meaning.numerals import magnitude_of, value_of

if TYPE_CHECKING:
    from paraforge.base.word_vectors.subword_vectors import SubwordVectors

ANTONYMS: Final = Path(__file__).parent / "antonyms.txt"
CONTENT, NEGATION, DENIAL, AFFIXED, LINK, CLAUSE, PASSIVE, NUMBER = (1 << place for place in range(8))
"""Properties of a word: it names something; it negates; it denies without a negation (`fail`, `few`); it is
negated by its affix; it links two things (a preposition); it ends a clause; it is `by`; it is a number."""

WORDS: Final = Path(__file__).parent / "english.txt"


def _lists() -> dict[str, list[str]]:
    lines = WORDS.read_text(encoding="utf-8").split("\n")
    named = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {name: words.split(" ") for name, _, words in named}


_LISTS: Final = _lists()
NEGATIONS, _DENIALS, _LINKS, _CLAUSES, _AFFIXED, _NOT_AFFIXED = (
    frozenset(_LISTS[name]) for name in ("negations", "denials", "links", "clauses", "affixed", "not affixed")
)
PERSONS: Final = {word: person for person in range(1, 7) for word in _LISTS[f"person {person}"]}
"""Who a pronoun points to, 1 to 6: I, we, you, he, she, they."""
_FUNCTION: Final = _LINKS | NEGATIONS | frozenset(_LISTS["function"]) | PERSONS.keys()
_IRREGULAR: Final = dict(pair.split("=") for pair in _LISTS["irregular"])
_KINDS: Final = (np.uint32, np.int32, np.uint8, np.float64, np.int8, np.float64, np.int32)
# Of a shard there are some 30,000; their directions have an eighth of a kilobyte each.
_MOST_WORDS: Final = 200_000

APOSTROPHES: Final = ("'", "’", "‘", "ʼ")
ENDINGS: Final = ("t", "s", "m", "d", "re", "ve", "ll")
"""Of contractions: what is before an ending, and the endings."""
NUMBER_SIGN: Final = "no."
ANSWER: Final = "no,"
"""An answer, which negates nothing behind it: `No, I do.`"""


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A lower-cased word without its inflexion: equal for most forms of one word, other for most words."""
    word = _IRREGULAR.get(word, word)
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ingly", "edly", "ing", "ed", "ly"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) > 2 and any(letter in "aeiouy" for letter in rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    if word.endswith("ied"):
        word = word[:-3] + "y"
    return (
        word[:-1] if word.endswith("e") and len(word) > 3 else word[:-1] + "y" if word.endswith("i") else word
    )


def antonym_pairs(near: bool = True) -> Iterator[tuple[str, str]]:
    """The pairs of `antonyms.txt`. near: also those of words that are similar to an antonym."""
    for line in ANTONYMS.read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("#"):
            direct, _, similar = line.partition("/")
            first, *others = direct.split()
            yield from ((first, other) for other in [*others, *(similar.split() if near else [])])


@lru_cache(maxsize=1)
def antonyms() -> dict[str, frozenset[str]]:
    """The stems of the antonyms of each stem that has some."""
    found: dict[str, set[str]] = {}
    for pair in antonym_pairs():
        first, second = map(stem, pair)
        if first != second:
            found.setdefault(first, set()).add(second)
            found.setdefault(second, set()).add(first)
    return {word: frozenset(others) for word, others in found.items()}


def without_affix(word: str) -> str | None:
    """The word without a negative affix, a word of its own only perhaps: `happy` of `unhappy`, `careful` of
    `careless`; None without such an affix."""
    for prefix in ("un", "in", "im", "il", "ir", "dis", "non-", "non"):
        if word.startswith(prefix) and len(word) > len(prefix) + 2:
            return word[len(prefix) :]
    return word[:-4] + "ful" if word.endswith("less") and len(word) > 6 else None


def negated_by_affix(word: str) -> bool:
    """Whether a negative affix negates the rest, and is not merely how the word begins: `unhappy`, not
    `uncle`."""
    rest = without_affix(word)
    if rest is None or stem(word) in _NOT_AFFIXED:
        return False
    if stem(word) in _AFFIXED or word.startswith("non-"):
        return True
    if word.startswith(("in", "im", "il", "ir")):
        return stem(rest) in antonyms().get(stem(word), frozenset())
    return stem(rest) in antonyms()


@lru_cache(maxsize=1 << 16)
def _about(word: str) -> tuple[int, float, int, float]:
    """Properties, number, person and magnitude of a word."""
    # `no. 5` is number 5.
    word = word if word == NUMBER_SIGN else word.rstrip(".") or word
    value = value_of(word)
    magnitude = magnitude_of(word)
    letters = any(character.isalnum() for character in word)
    properties = CONTENT * (letters and word not in _FUNCTION)
    properties |= NEGATION * (word in NEGATIONS) | DENIAL * (stem(word) in _DENIALS or word in _DENIALS)
    properties |= AFFIXED * negated_by_affix(word) | LINK * (word in _LINKS) | CLAUSE * (word in _CLAUSES)
    properties |= PASSIVE * (word == "by") | NUMBER * (value == value or magnitude > 0)
    return properties, value, PERSONS.get(word, 0), magnitude


class WordTable(NamedTuple):
    """What is known of each word of a vocabulary, in arrays as long as it.

    keys: hash of the word's stem, the same in each vocabulary. stems: number of the stem.
    properties: flags. values: of a number, NaN for none. persons: 0 to 6.
    magnitudes: see :func:`~paraforge.corpus.scoring.meaning.numerals.magnitude_of`.
    bases: number of the stem without its negative affix, -1 for none.
    opposed, opposed_offsets: numbers of the stems that are antonyms of each of the first stems, in order; a
    stem of a higher number has none.
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


class Directions(NamedTuple):
    """The direction of each word: whole numbers, (words, dimension), and what makes their length 1, (words,).

    Eight bits are enough for cosines that are true to 0.01; their sums are the same on every processor, and a
    quarter of the memory is read.
    """

    numbers: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]

    @classmethod
    def of(cls, vectors: npt.NDArray[np.float32]) -> "Directions":
        """Of vectors, (words, dimension)."""
        # Imported here, as all that reads a schema imports the scorers.
        from paraforge.base.word_vectors.subword_vectors import in_eight_bits

        numbers, _ = in_eight_bits(vectors)
        squares = (numbers.astype(np.int32) ** 2).sum(axis=1)
        return cls(numbers, (1 / np.sqrt(np.maximum(squares, 1))).astype(np.float32))


class WordBook:
    """Looks up words; remembers those that it was asked for, as the next shard has most of them again.

    Its first rows are the apostrophes, the endings, the endings with an apostrophe, `no`, `.`, `no.` and
    `no,`.
    """

    def __init__(self, vectors: "SubwordVectors | None" = None) -> None:
        """vectors: what words are like; without them words have no directions."""
        self._vectors = vectors
        self._lock = Lock()
        self._numbers = WordNumbers() if vectors is None else vectors.asked
        self._forget()

    def _forget(self) -> None:
        opposed = antonyms()
        self._stems = {word: number for number, word in enumerate(sorted(opposed))}
        numbers = [sorted(self._stems[other] for other in opposed[word]) for word in self._stems]
        self._opposed = np.array([number for others in numbers for number in others], np.int32)
        self._offsets = offsets_of(np.array([len(others) for others in numbers], np.int64))
        self._rows = np.zeros(0, np.int32)
        self._known: list[npt.NDArray[Any]] = [np.zeros(0, kind) for kind in _KINDS]
        self._directions = Directions(np.zeros((0, 0), np.int8), np.zeros(0, np.float32))
        joined = [f"'{ending}" for ending in ENDINGS]
        self._learn([*APOSTROPHES, *ENDINGS, *joined, "no", ".", NUMBER_SIGN, ANSWER])

    def look_up(self, vocabulary: Sequence[str]) -> WordTable:
        """What is known of lower-cased tokens."""
        rows, words, _ = self.numbered(vocabulary)
        return WordTable._make([*(values[rows] for values in words[:-2]), *words[-2:]])

    def numbered(self, vocabulary: Sequence[str]) -> tuple[npt.NDArray[np.int32], WordTable, Directions]:
        """The row of each lower-cased token, (tokens,), in what is known of all words that were asked for,
        which comes second; and the directions of these words."""
        with self._lock:
            numbers = self._numbers if self._vectors is None else self._vectors.asked
            if numbers is not self._numbers or len(self._known[0]) > _MOST_WORDS:
                self._numbers = numbers
                self._forget()
            rows = self._rows_of(vocabulary)
            new = [vocabulary[place] for place in np.flatnonzero(rows < 0).tolist()]
            if new:
                self._learn(list(dict.fromkeys(new)))
                rows = self._rows_of(vocabulary)
            words = WordTable._make([*self._known, self._opposed, self._offsets])
            return rows, words, self._directions

    def _rows_of(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        """The row of each word, -1 where there is none."""
        numbers = self._numbers.of(words)
        room = np.full(max(0, len(self._numbers) - len(self._rows)), -1, np.int32)
        self._rows = np.concatenate([self._rows, room]) if len(room) else self._rows
        return np.asarray(self._rows[numbers])

    def _learn(self, words: Sequence[str]) -> None:
        self._rows_of(words)
        begin = len(self._known[0])
        self._rows[self._numbers.of(words)] = np.arange(begin, begin + len(words))
        found = []
        for word in words:
            properties, value, person, magnitude = _about(word)
            rest = without_affix(word)
            base = -1 if rest is None else self._number(rest)
            found.append(
                (
                    crc32(stem(word).encode("utf-8", "surrogatepass")),
                    self._number(word),
                    properties,
                    value,
                    person,
                    magnitude,
                    base,
                )
            )
        columns = zip(*found, strict=True)
        self._known = [
            np.concatenate([known, np.array(column, known.dtype)])
            for known, column in zip(self._known, columns, strict=True)
        ]
        if self._vectors is not None:
            new = Directions.of(self._vectors.of_words(words, remember=False))
            known = self._directions.numbers.reshape(-1, new.numbers.shape[1])
            scales = np.concatenate([self._directions.scales, new.scales])
            self._directions = Directions(np.concatenate([known, new.numbers]), scales)

    def _number(self, word: str) -> int:
        return self._stems.setdefault(stem(word), len(self._stems))
