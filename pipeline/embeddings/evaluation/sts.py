"""Evaluates semantic textual similarity: correlations per set, year and sentence length (Wieting 2016,
Table 7), and the difference between two models (ParaNMT-50M, Table 10)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.text.tokens import tokenize_columns
from paraforge.embeddings.evaluation.comparing import Comparable, mean, pearson, spearman
from paraforge.embeddings.evaluation.sets import SentencePairs


@dataclass(frozen=True)
class SetScore:
    """The scores of a model on one set: correlations x 100 over the scored `pairs`, None if undefined;
    `unscored` rows are ignored."""

    name: str
    group: str
    pearson: float | None
    spearman: float | None
    pairs: int
    unscored: int


@dataclass(frozen=True)
class GroupScore:
    """The unweighted mean over the sets of a year."""

    name: str
    pearson: float | None
    spearman: float | None
    sets: int
    pairs: int


@dataclass(frozen=True)
class StsScores:
    """The scores of a model on several sets."""

    sets: list[SetScore]

    @property
    def groups(self) -> list[GroupScore]:
        """The years' scores, in the order of their first sets."""
        names = dict.fromkeys(score.group for score in self.sets)
        return [_group(name, [score for score in self.sets if score.group == name]) for name in names]


@dataclass(frozen=True)
class Compared:
    """A model's similarities on one set.

    pairs: the rows with a judgment. values: similarities, (pairs,). unscored: number of ignored rows.
    """

    pairs: SentencePairs
    values: npt.NDArray[np.float64]
    unscored: int


def compare(model: Comparable, sets: Sequence[SentencePairs]) -> list[Compared]:
    """Let a model compare the pairs of sets; unscored rows are ignored."""
    compared = []
    for pairs in sets:
        scored = pairs.scored
        values = model.similarity(scored.first, scored.second) if len(scored) else scored.gold
        compared.append(Compared(scored, np.asarray(values, np.float64), pairs.unscored))
    return compared


def score(compared: Sequence[Compared]) -> StsScores:
    """Correlate the similarities from :func:`compare` with the judgments."""
    return StsScores(
        [
            SetScore(
                pairs_of_set.pairs.name,
                pairs_of_set.pairs.group,
                pearson(pairs_of_set.pairs.gold, pairs_of_set.values),
                spearman(pairs_of_set.pairs.gold, pairs_of_set.values),
                len(pairs_of_set.pairs),
                pairs_of_set.unscored,
            )
            for pairs_of_set in compared
        ]
    )


def evaluate_sts(model: Comparable, sets: Sequence[SentencePairs]) -> StsScores:
    """Evaluate a model on sets; unscored rows are ignored."""
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
    """Return the unweighted mean of Pearson's r x 100 over development sets; 0 for a set where it is
    undefined."""
    scores = [score.pearson for score in evaluate_sts(model, sets).sets]
    return sum(score or 0.0 for score in scores) / len(scores)


SHORTEST: Final = 4
LONGEST: Final = 10
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True)
class LengthScore:
    """Correlations x 100 over pairs of one length, None if undefined.

    length: tokens in the longer sentence: `<= 4`, `5` to `9`, or `>= 10`.
    """

    length: str
    pairs: int
    pearson: float | None
    spearman: float | None


@dataclass(frozen=True)
class Difference:
    """The difference between two models.

    mean_absolute_pearson: mean over sets of the absolute difference in Pearson's r x 100; None without sets.
    sets: number of sets on which both are defined. by_set: first minus second.
    """

    mean_absolute_pearson: float | None
    sets: int
    by_set: dict[str, float]


def by_length(compared: Sequence[Compared]) -> list[LengthScore]:
    """Return the correlations for each length of the longer sentence, over the pooled pairs of all years'
    sets.

    Sets without a year are only used if no set has one: STS Benchmark repeats pairs of the years' sets.
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
    """Compare two models over the years' sets, or over all sets if none has a year."""
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
