"""Where a training of decoders is, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paraforge.learning.model_choice import ChoiceState


@dataclass
class PredictionState(ChoiceState):
    """Where a run is; with the tensors, all that resuming needs.

    position: triples of the epoch that have been seen. triples, words: seen and predicted in all epochs.
    loss_sum, loss_words: nats, and words that they are of, since the last entry of the history.
    history: one entry an evaluation or epoch: epoch, updates, triples, loss (nats a word, since the entry
        before), score or None.
    """

    epoch: int = 0
    position: int = 0
    updates: int = 0
    triples: int = 0
    words: int = 0
    loss_sum: float = 0.0
    loss_words: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def loss(self) -> float:
        """Nats a predicted word since the last entry of the history."""
        return self.loss_sum / max(self.loss_words, 1)
