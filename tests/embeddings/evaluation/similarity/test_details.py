"""Results by sentence length, and the difference between two models, against arithmetic by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr

from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs
from paraforge.embeddings.evaluation.similarity.sts import (
    Compared,
    SetScore,
    StsScores,
    by_length,
    difference,
)


def compared(group: str, lengths: list[tuple[int, int]], seed: int) -> Compared:
    first = [" ".join(["word"] * left) for left, _ in lengths]
    second = [" ".join(["word"] * right) for _, right in lengths]
    numbers = np.random.default_rng(seed).random((2, len(lengths)))
    return Compared(SentencePairs(f"{group}.x", group, first, second, numbers[0]), numbers[1], 0)


LENGTHS = [(1, 2), (4, 3), (2, 2), (5, 1), (5, 5), (3, 5), (6, 9), (9, 8), (1, 9), (10, 2), (2, 40), (11, 11)]


def test_by_length_pools_the_pairs_of_all_years() -> None:
    items = [compared("2012", LENGTHS, 1), compared("2013", LENGTHS, 2)]
    scores = {score.length: score for score in by_length([*items, compared("stsb-dev", LENGTHS, 3)])}
    assert list(scores) == ["<= 4", "5", "6", "7", "8", "9", ">= 10"]
    assert {length: score.pairs for length, score in scores.items()} == {
        "<= 4": 6,
        "5": 6,
        "6": 0,
        "7": 0,
        "8": 0,
        "9": 6,
        ">= 10": 6,
    }
    gold = np.concatenate([item.pairs.gold[3:6] for item in items])
    values = np.concatenate([item.values[3:6] for item in items])
    assert scores["5"].pearson == pytest.approx(100 * pearsonr(gold, values).statistic)
    assert scores["6"].pearson is None


def test_by_length_of_sets_without_a_year() -> None:
    assert sum(score.pairs for score in by_length([compared("stsb-dev", LENGTHS, 3)])) == len(LENGTHS)
    assert [score.pairs for score in by_length([])] == [0] * 7


def scores(**figures: float | None) -> StsScores:
    return StsScores(
        [SetScore(name, name.split("_")[0], figure, None, 9, 0) for name, figure in figures.items()]
    )


def test_difference() -> None:
    names = {"a": "2012", "b": "2013", "c": "2014", "d": "dev"}
    first = [
        SetScore(name, year, figure, None, 9, 0)
        for (name, year), figure in zip(names.items(), [60.0, 50.0, None, 10.0], strict=True)
    ]
    second = [
        SetScore(name, year, figure, None, 9, 0)
        for (name, year), figure in zip(names.items(), [58.0, 55.0, 40.0, 90.0], strict=True)
    ]
    found = difference(StsScores(first), StsScores(second))
    assert found.by_set == {"a": 2.0, "b": -5.0}
    assert (found.mean_absolute_pearson, found.sets) == (3.5, 2)
    only_dev = difference(scores(dev=60.0), scores(dev=58.0, other=1.0))
    assert (only_dev.mean_absolute_pearson, only_dev.sets) == (2.0, 1)
    assert difference(scores(dev=None), scores(dev=1.0)).mean_absolute_pearson is None
