"""The benchmark of signs: spoilt pairs, and a regression against what it has to find."""

import numpy as np
import pytest

from benchmarks.signs import fitted, foreign_words, judged_correlation, pairs, spoilt
from benchmarks.spoiling import SPOILINGS
from paraforge.corpus.scoring.verdict import area


def test_words_of_the_foreign_side_take_the_place_of_a_quarter() -> None:
    foreign = ["kočka seděla na rohoži a spala", "ne"]
    for source, text, right in zip(
        foreign, foreign_words(foreign, ["a b c d e f g h", "no"], 1), ["a b c d e f g h", "no"], strict=True
    ):
        changed = [new for new, old in zip(text.split(), right.split(), strict=True) if new != old]
        assert len(changed) == max(1, round(0.25 * len(right.split())))
        assert set(changed) <= set(source.split())


def test_each_kind_keeps_references_and_sources() -> None:
    right = pairs("s", [(f"reference {n}", f"the translation number {n}", f"zdroj {n}") for n in range(8)])
    for name, table in spoilt(right, 1).items():
        assert name in [*SPOILINGS, "foreign_words"]
        assert table.drop_columns("translation").equals(right.drop_columns("translation"))
        assert not table["translation"].equals(right["translation"])
    without = pairs("s", [("a b", "c d", None), ("e f", "g h", None)])
    assert list(spoilt(without, 1)) == list(SPOILINGS)


def test_the_regression_adds_what_each_column_knows() -> None:
    rng = np.random.default_rng(1)
    right, wrong = rng.normal(1, 1, size=(5000, 2)), rng.normal(size=(9000, 2))
    both = fitted(right, wrong)
    together = area(both(right), both(wrong))
    # Each column alone: the normal distribution at 1 / sqrt(2), 0.76; both: at 1, 0.84.
    assert abs(together - 0.84) < 0.02
    assert abs(area(right[:, 0], wrong[:, 0]) - 0.76) < 0.02


def test_correlation_with_judgements() -> None:
    values = np.arange(20.0)
    assert judged_correlation({"score": values}, 3 * values - 7, ["score"]) == pytest.approx(1)
    assert judged_correlation({"score": np.zeros(20)}, values, ["score"]) is None
