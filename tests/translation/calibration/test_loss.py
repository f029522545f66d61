"""What is lost, how sure that is, and when it is too much."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from sacrebleu.metrics.chrf import CHRF

from paraforge.translation.calibration.loss import QuantisationLoss, measure_loss

WORDS = ["a", "man", "in", "the", "blue", "shirt", "stands", "on", "ladder", "two", "young", "dogs"]


def sentences(count: int, seed: int = 1) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(4, 12))) for _ in range(count)]


def damaged(texts: list[str], share: float, seed: int = 2) -> list[str]:
    """Texts of which a share has lost its last word."""
    dice = random.Random(seed)
    return [text.rsplit(" ", 1)[0] if dice.random() < share else text for text in texts]


def rows(references: list[str], full: list[str], quantised: list[str]) -> pa.Table:
    losses = [0.0 if one == other else 0.5 for one, other in zip(full, quantised, strict=True)]
    return pa.table(
        {"reference": references, "float32": full, "quantised": quantised, "score_loss": losses},
    )


def test_figures_are_sacrebleus() -> None:
    references = sentences(120)
    full, quantised = damaged(references, 0.5, 3), damaged(references, 0.7, 4)
    found = measure_loss(rows(references, full, quantised), "int8")
    before, after = (CHRF().corpus_score(side, [references]).score for side in (full, quantised))
    assert found.chrf_float32 == pytest.approx(before, abs=1e-4)
    assert found.chrf == pytest.approx(after, abs=1e-4)
    assert found.loss == pytest.approx(before - after, abs=1e-4)
    same = np.mean([one == other for one, other in zip(full, quantised, strict=True)])
    assert found.identical == pytest.approx(same, abs=1e-4)
    assert found.score_loss == pytest.approx(0.5 * (1 - same), abs=1e-6)
    assert found.agreement < 100


def test_nothing_is_lost_where_nothing_differs() -> None:
    references = sentences(30)
    found = measure_loss(rows(references, references, references), "int8")
    assert (found.loss, found.error, found.identical, found.agreement) == (0.0, 0.0, 1.0, 100.0)
    assert not found.exceeds(0.0)


def test_the_standard_error_is_the_spread_over_samples() -> None:
    # An oracle: both scores on a thousand resamples of the same sentences.
    references = sentences(150)
    full, quantised = damaged(references, 0.3, 3), damaged(references, 0.4, 4)
    metric = CHRF()
    statistics = [
        np.array(metric._extract_corpus_statistics(side, [references])) for side in (full, quantised)
    ]
    losses = []
    for places in np.random.default_rng(1).integers(0, 150, (1000, 150)):
        before, after = (
            metric._compute_score_from_stats(list(side[places].sum(0))).score for side in statistics
        )
        losses.append(before - after)
    found = measure_loss(rows(references, full, quantised), "int8")
    assert found.error == pytest.approx(np.std(losses), rel=0.3)


def test_a_loss_counts_above_the_limit_and_above_chance() -> None:
    found = QuantisationLoss("int8", 500, 0.9, 99.0, 59.0, 58.7, 0.3, 0.1, 0.001)
    assert found.exceeds(0.2)
    assert not found.exceeds(0.3)
    assert not replace(found, error=0.15).exceeds(0.2)
    assert not replace(found, loss=-0.3).exceeds(0.0)
    assert "a loss of 0.30 ± 0.10; 90.0% of the hypotheses are the same" in str(found)


def test_scores_that_are_no_numbers() -> None:
    table = rows(["a b"], ["a b"], ["a"]).set_column(3, "score_loss", pa.array([None], pa.float64()))
    assert measure_loss(table, "int8").score_loss is None
