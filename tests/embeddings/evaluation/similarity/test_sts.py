"""Scores on STS sets: against arithmetic by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from paraforge.embeddings.evaluation.correlation import pearson, spearman
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs
from paraforge.embeddings.evaluation.similarity.comparing import similarities
from paraforge.embeddings.evaluation.similarity.sts import development_score, evaluate_sts

VECTORS = {
    "east": [2.0, 0.0],
    "north": [0.0, 1.0],
    "north east": [3.0, 3.0],
    "west": [-1.0, 0.0],
    "": [0.0, 0.0],
}


class Compass:
    """Embeds directions."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array([VECTORS[text] for text in texts], dtype=np.float32)


class Lengths:
    """Compares texts by their lengths."""

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        return np.array([-abs(len(a) - len(b)) for a, b in zip(first, second, strict=True)], dtype=np.float64)


class Counted:
    """Adapts to the number of texts."""

    def adapted_to(self, texts: Sequence[str]) -> Lengths:
        self.seen = list(texts)
        return Lengths()


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


def test_cosine_of_the_vectors() -> None:
    expected = [1, 0, math.sqrt(0.5), -1]
    np.testing.assert_allclose(similarities(Compass(), SET), expected, atol=1e-7)
    np.testing.assert_allclose(similarities(Compass(), pairs("x", "x", ("", "east", 1.0))), [0])


def test_pearson_and_spearman() -> None:
    (score,) = evaluate_sts(Compass(), [SET]).sets
    expected = by_hand([5, 1, 4, 0], [1, 0, math.sqrt(0.5), -1])
    assert score.pearson == pytest.approx(100 * expected, abs=1e-5)
    assert score.spearman == pytest.approx(100)
    assert (score.pairs, score.unscored) == (4, 0)
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert spearman(np.array([1.0, 2, 2, 4]), np.array([1.0, 2, 3, 4])) == pytest.approx(
        100 * by_hand([1, 2.5, 2.5, 4], [1, 2, 3, 4])
    )


def test_a_year_is_the_unweighted_mean_of_its_sets() -> None:
    long = pairs("2012.b", "2012", *(ROWS[:2] * 5), ("north", "north", 0.0))
    other = pairs("dev", "dev", *ROWS)
    scores = evaluate_sts(Compass(), [SET, long, other])
    years = {group.name: group for group in scores.groups}
    assert list(years) == ["2012", "dev"]
    first, second, third = (score.pearson for score in scores.sets)
    assert first is not None
    assert second is not None
    assert years["2012"].pearson == pytest.approx((first + second) / 2)
    assert years["dev"].pearson == third
    assert (years["2012"].sets, years["2012"].pairs) == (2, 15)


def test_unscored_rows_are_passed_over() -> None:
    with_more = pairs("2012.a", "2012", *ROWS[:2], ("north", "north", math.nan), *ROWS[2:])
    assert (
        evaluate_sts(Compass(), [with_more]).sets[0].pearson == evaluate_sts(Compass(), [SET]).sets[0].pearson
    )
    assert evaluate_sts(Compass(), [with_more]).sets[0].unscored == 1


def test_what_has_no_correlation() -> None:
    same = pairs("2012.b", "2012", ("east", "east", 1.0), ("north", "north", 2.0))
    one = pairs("c", "c", ROWS[0])
    none = pairs("d", "d", ("east", "east", math.nan))
    scores = evaluate_sts(Compass(), [SET, same, one, none])
    assert [score.pearson for score in scores.sets[1:]] == [None, None, None]
    assert scores.groups[0].pearson is None
    assert pearson(np.array([1.0, 1.0]), np.array([1.0, 2.0])) is None


def test_a_similarity_without_vectors_and_one_that_adapts() -> None:
    assert similarities(Lengths(), SET).tolist() == [0, -1, -6, 0]
    adaptive = Counted()
    assert similarities(adaptive, SET).tolist() == [0, -1, -6, 0]
    assert adaptive.seen == [*SET.first, *SET.second]


def test_development_score() -> None:
    found = pairs("2017.x", "2017", *ROWS)
    expected = 100 * by_hand([5, 1, 4, 0], [1, 0, math.sqrt(0.5), -1])
    assert development_score(Compass(), [found]) == pytest.approx(expected, abs=1e-5)
    same = pairs("same", "same", ("east", "east", 1.0), ("north", "north", 2.0))
    assert development_score(Compass(), [found, same]) == pytest.approx(expected / 2, abs=1e-5)
