"""Scores on STS sets, by length, and differences of models, by hand."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import pearsonr

from paraforge.embeddings.evaluation.comparing import Model, pearson, spearman
from paraforge.embeddings.evaluation.sets import SentencePairs
from paraforge.embeddings.evaluation.sts import (
    Compared,
    SetScore,
    StsScores,
    by_length,
    compare,
    development_score,
    difference,
    evaluate_sts,
)
from paraforge.embeddings.evaluation.word_lists import SimilarityList, evaluate_words

VECTORS = {"east": [2, 0], "north": [0, 1], "north east": [3, 3], "west": [-1, 0], "": [0, 0]}


class Compass(Model):
    """Embeds directions."""

    def vectors_of(self, column: Any) -> npt.NDArray[np.float32]:
        return np.array([VECTORS[text] for text in column.to_pylist()], dtype=np.float32)


class Lengths:
    """Compares texts by their lengths."""

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        return np.array([-abs(len(a) - len(b)) for a, b in zip(first, second, strict=True)], dtype=np.float64)


def pairs(name: str, group: str, *rows: tuple[str, str, float]) -> SentencePairs:
    first, second, gold = zip(*rows, strict=True)
    return SentencePairs(name, group, first, second, np.array(gold))


ROWS = [("east", "east", 5.0), ("east", "north", 1.0), ("east", "north east", 4.0), ("east", "west", 0.0)]
SET = pairs("2012.a", "2012", *ROWS)


def by_hand(x: list[float], y: list[float]) -> float:
    """Pearson's r as its definition has it."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return covariance / math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))


def test_pearson_and_spearman() -> None:
    (score,) = evaluate_sts(Compass(), [SET]).sets
    expected = by_hand([5, 1, 4, 0], [1, 0, math.sqrt(0.5), -1])
    assert score.pearson == pytest.approx(100 * expected, abs=1e-5)
    assert score.spearman == pytest.approx(100)
    assert (score.pairs, score.unscored) == (4, 0)
    two = np.array([1.0, 2.0])
    assert (pearson(two, 3 - two), spearman(two, two)) == pytest.approx((-100, 100))
    assert pearson(two[:1], two[:1]) is None
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert spearman(np.array([1.0, 2, 2, 4]), np.array([1.0, 2, 3, 4])) == pytest.approx(
        100 * by_hand([1, 2.5, 2.5, 4], [1, 2, 3, 4])
    )


def test_year_is_unweighted_mean_of_sets() -> None:
    long = pairs("2012.b", "2012", *(ROWS[:2] * 5), ("north", "north", 0.0))
    other = pairs("dev", "dev", *ROWS)
    scores = evaluate_sts(Compass(), [SET, long, other])
    years = {group.name: group for group in scores.groups}
    assert list(years) == ["2012", "dev"]
    first, second, third = (score.pearson for score in scores.sets)
    assert years["2012"].pearson == pytest.approx((first + second) / 2)
    assert years["dev"].pearson == third
    assert (years["2012"].sets, years["2012"].pairs) == (2, 15)


def test_unscored_rows_are_skipped_in_correlation() -> None:
    with_more = pairs("2012.a", "2012", *ROWS[:2], ("north", "north", math.nan), *ROWS[2:])
    (found,), (expected,) = (evaluate_sts(Compass(), [one]).sets for one in (with_more, SET))
    assert (found.pearson, found.unscored) == (expected.pearson, 1)


def test_undefined_correlations() -> None:
    same = pairs("2012.b", "2012", ("east", "east", 1.0), ("north", "north", 2.0))
    one = pairs("c", "c", ROWS[0])
    none = pairs("d", "d", ("east", "east", math.nan))
    scores = evaluate_sts(Compass(), [SET, same, one, none])
    assert [score.pearson for score in scores.sets[1:]] == [None, None, None]
    assert scores.groups[0].pearson is None
    assert pearson(np.array([1.0, 1.0]), np.array([1.0, 2.0])) is None
    assert all(pearson(np.array([1.0, 2, 3]), np.array([1, 2, wrong])) is None for wrong in (np.nan, np.inf))


class DotProduct(Compass):
    def similarity_of_vectors(self, left: Any, right: Any) -> Any:
        return (left * right).sum(1, dtype=np.float64)


def test_vectors_are_compared_by_cosine_or_model() -> None:
    first, second = zip(*((first, second) for first, second, _ in [*ROWS, ("east", "", 0.0)]), strict=True)
    np.testing.assert_allclose(Compass().similarity(first, second), [1, 0, 0.5**0.5, -1, 0], atol=1e-6)
    assert DotProduct().similarity(first, second).tolist() == [4, 0, 6, -2, 0]
    # Words, too: (north, north) is first by cosine, (east, north east) by dot product.
    judged = [("east", "north east"), ("north", "north"), ("east", "north")]
    judgments = SimilarityList("list", judged, [3.0, 2.0, 1.0])
    assert evaluate_words(DotProduct(), judgments).spearman == pytest.approx(100)
    assert evaluate_words(Compass(), judgments).spearman == pytest.approx(50)


def test_similarity_without_vectors() -> None:
    assert compare(Lengths(), [SET])[0].values.tolist() == [0, -1, -6, 0]


def test_development_score() -> None:
    found = pairs("2017.x", "2017", *ROWS)
    expected = 100 * by_hand([5, 1, 4, 0], [1, 0, math.sqrt(0.5), -1])
    assert development_score(Compass(), [found]) == pytest.approx(expected, abs=1e-5)
    same = pairs("same", "same", ("east", "east", 1.0), ("north", "north", 2.0))
    assert development_score(Compass(), [found, same]) == pytest.approx(expected / 2, abs=1e-5)


LENGTHS = [(1, 2), (4, 3), (2, 2), (5, 1), (5, 5), (3, 5), (6, 9), (9, 8), (1, 9), (10, 2), (2, 40), (11, 11)]


def compared(group: str, seed: int) -> Compared:
    """Pairs of these lengths with random judgments and values."""
    first, second = ([" ".join(["word"] * length) for length in side] for side in zip(*LENGTHS, strict=True))
    numbers = np.random.default_rng(seed).random((2, len(LENGTHS)))
    return Compared(SentencePairs(f"{group}.x", group, first, second, numbers[0]), numbers[1], 0)


def test_by_length_pools_the_pairs_of_all_years() -> None:
    items = [compared("2012", 1), compared("2013", 2)]
    scores = by_length([*items, compared("stsb-dev", 3)])
    assert [score.length for score in scores] == ["<= 4", "5", "6", "7", "8", "9", ">= 10"]
    assert [score.pairs for score in scores] == [6, 6, 0, 0, 0, 6, 6]
    gold = np.concatenate([item.pairs.gold[3:6] for item in items])
    values = np.concatenate([item.values[3:6] for item in items])
    assert scores[1].pearson == pytest.approx(100 * pearsonr(gold, values).statistic)
    assert scores[2].pearson is None


def test_by_length_of_sets_without_a_year() -> None:
    assert sum(score.pairs for score in by_length([compared("stsb-dev", 3)])) == len(LENGTHS)
    assert [score.pairs for score in by_length([])] == [0] * 7


def scores(**figures: float | None) -> StsScores:
    items = figures.items()
    return StsScores([SetScore(name, name.split("_")[0], figure, None, 9, 0) for name, figure in items])


def test_difference() -> None:
    first = scores(**{"2012_a": 60.0, "2013_b": 50.0, "2014_c": None, "dev": 10.0})
    second = scores(**{"2012_a": 58.0, "2013_b": 55.0, "2014_c": 40.0, "dev": 90.0})
    found = difference(first, second)
    assert found.by_set == {"2012_a": 2.0, "2013_b": -5.0}
    assert (found.mean_absolute_pearson, found.sets) == (3.5, 2)
    only_dev = difference(scores(dev=60.0), scores(dev=58.0, other=1.0))
    assert (only_dev.mean_absolute_pearson, only_dev.sets) == (2.0, 1)
    assert difference(scores(dev=None), scores(dev=1.0)).mean_absolute_pearson is None
