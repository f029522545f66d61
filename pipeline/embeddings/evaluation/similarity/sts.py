"""Semantic textual similarity: Pearson and Spearman of a model on each set, and a year's mean over its
sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paraforge.base.interrupts import check_interrupt
from paraforge.embeddings.evaluation.correlation import mean, pearson, spearman
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs
from paraforge.embeddings.evaluation.similarity.comparing import Comparable, similarities


@dataclass(frozen=True)
class SetScore:
    """A model on one set: correlations x 100, None where they are not defined, of the scored `pairs`;
    `unscored` rows were passed over."""

    name: str
    group: str
    pearson: float | None
    spearman: float | None
    pairs: int
    unscored: int


@dataclass(frozen=True)
class GroupScore:
    """Unweighted mean over the sets of a year."""

    name: str
    pearson: float | None
    spearman: float | None
    sets: int
    pairs: int


@dataclass(frozen=True)
class StsScores:
    """A model on several sets."""

    sets: list[SetScore]

    @property
    def groups(self) -> list[GroupScore]:
        """Years in the order of their first sets."""
        names = dict.fromkeys(score.group for score in self.sets)
        return [_group(name, [score for score in self.sets if score.group == name]) for name in names]


@dataclass(frozen=True)
class Compared:
    """What a model found on one set.

    pairs: with a judgement each. values: its similarities, (pairs,). unscored: rows passed over.
    """

    pairs: SentencePairs
    values: npt.NDArray[np.float64]
    unscored: int


def compare(model: Comparable, sets: Sequence[SentencePairs]) -> list[Compared]:
    """Let a model compare the pairs of sets; unscored rows are passed over."""
    compared = []
    for pairs in sets:
        check_interrupt()
        scored = pairs.scored
        values = similarities(model, scored) if len(scored) else scored.gold
        compared.append(Compared(scored, values, pairs.unscored))
    return compared


def score(compared: Sequence[Compared]) -> StsScores:
    """Correlations of what :func:`compare` found."""
    return StsScores(
        [
            SetScore(
                one.pairs.name,
                one.pairs.group,
                pearson(one.pairs.gold, one.values),
                spearman(one.pairs.gold, one.values),
                len(one.pairs),
                one.unscored,
            )
            for one in compared
        ]
    )


def evaluate_sts(model: Comparable, sets: Sequence[SentencePairs]) -> StsScores:
    """Evaluate a model on sets; unscored rows are passed over."""
    return score(compare(model, sets))


def _group(name: str, scores: list[SetScore]) -> GroupScore:
    return GroupScore(
        name,
        mean([score.pearson for score in scores]),
        mean([score.spearman for score in scores]),
        len(scores),
        sum(score.pairs for score in scores),
    )


def development_score(model: Comparable, sets: Sequence[SentencePairs]) -> float:
    """Unweighted mean of Pearson's r x 100 over development sets; 0 for a set where it is not defined."""
    scores = [score.pearson for score in evaluate_sts(model, sets).sets]
    return sum(score or 0.0 for score in scores) / len(scores)
