"""Signs of a few pairs, by name."""

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.word_vectors.subword_vectors import SubwordVectors
from paraforge.corpus.scoring.alignment import directions_of
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.meaning.signs import NAMES, signs_of
from paraforge.corpus.scoring.meaning.words import WordBook
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers.meaning import Meaning
from paraforge.corpus.scoring.word_scorer import WordScorer

Pair = tuple[str, str]


@cache
def vectors() -> SubwordVectors:
    return WordScorer.open(DIRECTORY).vectors


@cache
def book() -> WordBook:
    return WordBook()


@cache
def meaning() -> Meaning:
    return Meaning()


def found_in(
    pairs: list[Pair], words: WordBook | None = None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int16]]:
    """Signs and counts of each pair."""
    sides = of(pairs)
    vocabulary = sides.reference_tokens.vocabulary
    known = (words or book()).numbered(vocabulary)
    directions, _ = directions_of(vectors().of_words(vocabulary))
    return signs_of(sides.reference_tokens, sides.translation_tokens, *known, directions)


def of(pairs: list[Pair]) -> Pairs:
    return Pairs.of(*(pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1)))


def signs(*pairs: Pair) -> list[dict[str, float]]:
    """The signs of each pair that are not 0."""
    rows = found_in(list(pairs))[0].tolist()
    return [{name: float(value) for name, value in zip(NAMES, row, strict=True) if value} for row in rows]


def columns(*pairs: Pair) -> list[dict[str, float]]:
    """The columns of each pair."""
    return pa.table(meaning()(of(list(pairs)))).to_pylist()
