"""What quantisation costs on a sample: chrF lost, with its standard error, and how many hypotheses change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

# Groups of the jackknife: its standard error is then itself within a seventh.
_GROUPS = 25
# A loss that could be chance is none: so many standard errors.
_CHANCE = 2.0


@dataclass(frozen=True)
class QuantisationLoss:
    """Best hypotheses of a quantised model beside those of the same model in float32.

    Attributes:
        compute_type: of the quantised one.
        sentences: in the sample.
        identical: share of them (0-1) whose best hypothesis is the same.
        agreement: chrF of the quantised hypotheses against those of float32, 0 to 100.
        chrf_float32, chrf: of both against the references, 0 to 100.
        loss: chrf_float32 - chrf; below 0 where the quantised model is better.
        error: standard error of ``loss`` over samples like this one.
        score_loss: nats per token by which float32 finds the quantised hypotheses less probable than its own,
            on average over the sample; None where no score is a number.
    """

    compute_type: str
    sentences: int
    identical: float
    agreement: float
    chrf_float32: float
    chrf: float
    loss: float
    error: float
    score_loss: float | None

    def exceeds(self, limit: float) -> bool:
        """Whether more than ``limit`` chrF is lost, and more than chance: two standard errors."""
        return self.loss > limit and self.loss > _CHANCE * self.error

    def __str__(self) -> str:
        return (
            f"{self.compute_type} against float32 on {self.sentences} sentences: "
            f"chrF {self.chrf:.2f} against {self.chrf_float32:.2f}, "
            f"a loss of {self.loss:.2f} ± {self.error:.2f}; "
            f"{self.identical:.1%} of the hypotheses are the same"
        )


def measure_loss(rows: pa.Table, compute_type: str) -> QuantisationLoss:
    """Compare hypotheses.

    Args:
        rows: at least one, with ``reference``, ``float32``, ``quantised`` and ``score_loss``.
        compute_type: of the quantised hypotheses.
    """
    references, full, quantised = (rows[name].to_pylist() for name in ("reference", "float32", "quantised"))
    score_loss = pc.mean(rows["score_loss"]).as_py()
    before, after = _chrf(full, references), _chrf(quantised, references)
    return QuantisationLoss(
        compute_type=compute_type,
        sentences=rows.num_rows,
        identical=round(sum(map(str.__eq__, full, quantised)) / rows.num_rows, 4),
        agreement=round(_chrf(quantised, full), 4),
        chrf_float32=round(before, 4),
        chrf=round(after, 4),
        loss=round(before - after, 4),
        error=round(_standard_error(full, quantised, references), 4),
        score_loss=None if score_loss is None else round(score_loss, 6),
    )


def _chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    from sacrebleu.metrics.chrf import CHRF

    return float(CHRF().corpus_score(list(hypotheses), [list(references)]).score)


def _standard_error(full: Sequence[str], quantised: Sequence[str], references: Sequence[str]) -> float:
    """Standard error of the difference of two corpus scores: the jackknife that leaves out groups.

    Paired: both scores are of the same sentences, so what is hard about them cancels. Every twenty-fifth
    sentence is a group's: a sample in random order needs no other choice.
    """
    count = min(_GROUPS, len(references))
    if count < 2 or list(full) == list(quantised):
        return 0.0
    losses = []
    for group in range(count):
        kept = [place for place in range(len(references)) if place % count != group]
        against = [references[place] for place in kept]
        before, after = ([side[place] for place in kept] for side in (full, quantised))
        losses.append(_chrf(before, against) - _chrf(after, against))
    mean = sum(losses) / count
    return math.sqrt((count - 1) / count * sum((loss - mean) ** 2 for loss in losses))
