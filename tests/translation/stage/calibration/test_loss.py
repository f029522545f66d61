"""What is lost, how sure that is, and when it is not shown to be little."""

from __future__ import annotations

import logging
import math
import random

import numpy as np
import pyarrow as pa
import pytest
from sacrebleu.metrics.chrf import CHRF

from paraforge.base.errors import InputError
from paraforge.translation.stage.calibration.loss import (
    BOTH_WAYS,
    LIMIT,
    MINIMUM,
    SHARE,
    QuantisationLoss,
    decided,
    measure_loss,
    sample_size,
)

WORDS = ["a", "man", "in", "the", "blue", "shirt", "stands", "on", "ladder", "two", "young", "dogs"]


def sentences(count: int, seed: int = 1) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(4, 12))) for _ in range(count)]


def both_ways(full: list[str], quantised: list[str], losses: list[float], ruined: list[int]) -> pa.Table:
    numbers = pa.array(losses, pa.float64(), from_pandas=True)
    return pa.table([full, quantised, numbers, ruined], schema=BOTH_WAYS)


def sample(losses: list[float], ruined: list[int] | None = None) -> pa.Table:
    texts = sentences(len(losses))
    other = [text + " x" if loss else text for text, loss in zip(texts, losses, strict=True)]
    return both_ways(texts, other, losses, ruined or [0] * len(losses))


def normal(mean: float, deviation: float, count: int, seed: int = 1) -> list[float]:
    return np.random.default_rng(seed).normal(mean, deviation, count).tolist()


def test_arithmetic() -> None:
    found = both_ways(["a", "b", "c", ""], ["a", "x", "", ""], [0.0, 0.3, math.nan, 0.0], [0, 0, 1, 0])
    loss = measure_loss(found, "int8")
    assert (loss.sentences, loss.identical, loss.ruined) == (4, 0.5, 0.25)
    assert loss.loss == pytest.approx(0.1)
    # Deviations -0.1, 0.2, -0.1: the standard error is sqrt(0.03) / sqrt(3) = 0.1.
    assert loss.bound == pytest.approx(0.1 + 1.645 * 0.1)
    # One of four, half an observation more in each cell: 1/6, and sqrt(2 - 1/6) / 6.
    assert loss.ruined_bound == pytest.approx(1 / 6 + 1.645 * math.sqrt(2 - 1 / 6) / 6)
    assert loss.chrf is None


def test_chrf_is_sacrebleus() -> None:
    references = sentences(120)
    found = sample(normal(0.1, 0.1, 120))
    loss = measure_loss(found, "int8", references)
    sides = [found.column(side).to_pylist() for side in ("float32", "quantised")]
    expected = [CHRF().corpus_score(side, [references]).score for side in sides]
    assert [loss.chrf_float32, loss.chrf] == pytest.approx(expected, abs=1e-4)
    assert "chrF" in str(loss)


@pytest.mark.parametrize(
    ("losses", "ruined", "within"),
    [
        pytest.param([0.0] * 300, None, True, id="nothing differs"),
        pytest.param(normal(0.0, 0.03, 1000), None, True, id="as good"),
        pytest.param(normal(-0.01, 0.03, 300), None, True, id="better"),
        pytest.param(normal(0.05, 0.03, 1000), None, False, id="worse"),
        pytest.param([-0.5, 0.5] * 150, None, False, id="not worse, but nothing is shown"),
        pytest.param([0.0] * 10 + [10.0, 12.0], [0] * 10 + [1, 1], False, id="two of twelve are garbage"),
        pytest.param([0.0] * 12, None, False, id="twelve that are the same show nothing"),
        pytest.param([0.0] * 199, None, False, id="too few"),
        pytest.param([0.0] * 200, None, True, id="enough"),
        pytest.param([0.0] * 300, [1] * 3 + [0] * 297, False, id="three of 300 are ruined"),
        pytest.param([0.0] * 1000, [1] * 3 + [0] * 997, True, id="three of 1,000"),
        pytest.param([0.0] * 1000, [1] * 9 + [0] * 991, False, id="nine of 1,000"),
        pytest.param([0.0] * 1000, [1] * 9 + [-1] * 9 + [0] * 982, True, id="as many better as worse"),
        pytest.param([math.nan] * 300, None, False, id="no number at all"),
    ],
)
def test_only_what_is_shown_to_lose_little_is_accepted(
    losses: list[float], ruined: list[int] | None, within: bool
) -> None:
    assert measure_loss(sample(losses, ruined), "int8").within(LIMIT) is within


def test_a_loss_at_the_limit_is_accepted_once_in_twenty() -> None:
    accepted = sum(
        measure_loss(sample(normal(LIMIT, 0.05, 250, seed)), "int8").within(LIMIT) for seed in range(1000)
    )
    assert 30 < accepted < 75


def test_the_sample_is_a_tenth_of_the_work() -> None:
    assert sample_size(MINIMUM * SHARE - 1) == 0
    assert sample_size(MINIMUM * SHARE) == MINIMUM
    assert sample_size(10_000_000) == 1000
    assert sample_size(10_000_000, 3000) == 3000
    for total in range(0, 100_000, 999):
        assert 4 * sample_size(total) <= total / 10


def test_the_decision(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    good = QuantisationLoss("int8", 500, 0.9, 0.001, 0.003, 0.0, 0.004)
    assert decided(good, "int8", "fallback", LIMIT, model=None, remedy="") == "int8"
    assert "a loss of 0.0010 nats a token, at most 0.0030" in caplog.text
    assert decided(good, "int8", "fallback", 0.002, model=None, remedy="") == "float32"
    with pytest.raises(InputError, match=r"not shown to lose less than 0\.002.*Do so"):
        decided(good, "int8", "error", 0.002, model=None, remedy="Do so.")
    assert decided(None, "int8", "fallback", LIMIT, model=None, remedy="") == "float32"
    assert "too little text" in caplog.text
    with pytest.raises(InputError, match=r"too little text .*8,000 sentences are enough"):
        decided(None, "int8", "error", LIMIT, model=None, remedy="")
