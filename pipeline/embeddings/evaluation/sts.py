"""Semantic textual similarity: correlations on each set, a year's mean over its sets, by sentence length
(Wieting 2016, Table 7), and how far two models differ (ParaNMT-50M, Table 10)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.interrupts import check_interrupt
from paraforge.base.text.tokens import tokenize_columns
from paraforge.embeddings.evaluation.comparing import Comparable, mean, pearson, similarities, spearman
from paraforge.embeddings.evaluation.sets import SentencePairs


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


SHORTEST: Final = 4
LONGEST: Final = 10
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True)
class LengthScore:
    """Pairs of one length. Correlations are x 100, None where they are not defined.

    length: tokens of the longer sentence: `<= 4`, `5` to `9`, `>= 10`.
    """

    length: str
    pairs: int
    pearson: float | None
    spearman: float | None


@dataclass(frozen=True)
class Difference:
    """How far two models differ.

    mean_absolute_pearson: mean over sets of the absolute difference in Pearson's r x 100; None without any.
    sets: on which both are defined. by_set: first minus second.
    """

    mean_absolute_pearson: float | None
    sets: int
    by_set: dict[str, float]


def by_length(compared: Sequence[Compared]) -> list[LengthScore]:
    """Correlation within the pairs of each length (of the longer sentence, in tokens), over the pooled pairs
    of all years' sets. Sets without a year, such as STS Benchmark, which repeats pairs of the years, are
    looked at only where there are no others.
    """
    chosen = [item for item in compared if _YEAR.fullmatch(item.pairs.group) is not None] or list(compared)
    lengths = np.concatenate([_lengths(item.pairs) for item in chosen] or [np.empty(0, np.int64)])
    gold = np.concatenate([item.pairs.gold for item in chosen] or [np.empty(0)])
    values = np.concatenate([item.values for item in chosen] or [np.empty(0)])
    binned = np.clip(lengths, SHORTEST, LONGEST)
    signs = {SHORTEST: "<= ", LONGEST: ">= "}
    return [
        LengthScore(
            f"{signs.get(length, '')}{length}",
            int((binned == length).sum()),
            pearson(gold[binned == length], values[binned == length]),
            spearman(gold[binned == length], values[binned == length]),
        )
        for length in range(SHORTEST, LONGEST + 1)
    ]


def difference(first: StsScores, second: StsScores) -> Difference:
    """Mean absolute difference in Pearson's r over years' sets, or over all sets where none has a year."""
    others = {score.name: score.pearson for score in second.sets}
    chosen = [item for item in first.sets if _YEAR.fullmatch(item.group)] or first.sets
    by_set = {}
    for item in chosen:
        other = others.get(item.name)
        if item.pearson is not None and other is not None:
            by_set[item.name] = item.pearson - other
    mean = float(np.mean(np.abs(list(by_set.values())))) if by_set else None
    return Difference(mean, len(by_set), by_set)


def _lengths(pairs: SentencePairs) -> npt.NDArray[np.int64]:
    first, second = tokenize_columns(pa.array(pairs.first, pa.string()), pa.array(pairs.second, pa.string()))
    return np.maximum(first.lengths, second.lengths)
