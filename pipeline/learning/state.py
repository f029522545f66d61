"""Where a training run is, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paraforge.learning.model_choice import ChoiceState


@dataclass
class TrainingState(ChoiceState):
    """Where a run is; with the tensors, all that resuming needs.

    pairs: seen, those of every epoch. passed_over: of these, pairs without any candidate for a negative,
        which were not trained on. empty_batches: mini-batches of nothing but such pairs.
    history: one entry an evaluation or epoch: epoch, pairs, updates, loss (mean since the entry before, None
        where no pair was trained on), score or None.
    """

    epoch: int = 0
    position: int = 0
    updates: int = 0
    pairs: int = 0
    loss_sum: float = 0.0
    loss_pairs: int = 0
    averaged: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    passed_over: int = 0
    empty_batches: int = 0

    @property
    def loss(self) -> float | None:
        """Mean since the last entry of the history; None where no pair was trained on."""
        return self.loss_sum / self.loss_pairs if self.loss_pairs else None

    @property
    def latest_loss(self) -> float | None:
        """The same, or the history's last one where there is none yet."""
        if self.loss is not None:
            return self.loss
        return next((entry["loss"] for entry in reversed(self.history) if entry["loss"] is not None), None)


@dataclass(frozen=True)
class TrainingReport:
    """What a run did; seconds and pairs_per_second are of this process, without building the pairs and
    without evaluation."""

    state: TrainingState
    seconds: float
    pairs_per_second: float
