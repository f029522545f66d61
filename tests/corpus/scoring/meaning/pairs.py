"""Signs of a few pairs, by name."""

from functools import cache

import pyarrow as pa

from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.meaning.evidence import Evidence
from paraforge.corpus.scoring.meaning.model import SIGNS
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers.meaning import Meaning
from paraforge.corpus.scoring.word_scorer import WordScorer

Pair = tuple[str, str]


@cache
def evidence() -> Evidence:
    return Evidence(WordScorer.open(DIRECTORY).vectors)


@cache
def meaning() -> Meaning:
    return Meaning()


def of(pairs: list[Pair]) -> Pairs:
    return Pairs.of(*(pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1)))


def signs(*pairs: Pair) -> list[dict[str, float]]:
    """The signs of each pair that are not 0."""
    found = evidence().signs(of(list(pairs)))[0]
    return [
        {name: float(value) for name, value in zip(SIGNS, row, strict=True) if value}
        for row in found.tolist()
    ]


def columns(*pairs: Pair) -> list[dict[str, float]]:
    """The columns of each pair."""
    scores = meaning()(of(list(pairs)))
    return pa.table(scores).to_pylist()
