"""The small network over sentence vectors that a transfer task trains (Wieting 2016, 4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from paraforge.interrupts import check_interrupt

Scores = npt.NDArray[np.float64]
Kept = TypeVar("Kept")


class SigmoidSoftmax(nn.Module):
    """`softmax(W_p * sigmoid(W x + b_h) + b_p)` over the classes.

    Over a pair x is |u - v| and u * v together, so that W holds W_+ and W_x of W16 Eq. 12.
    """

    def __init__(self, inputs: int, hidden: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.hidden = nn.Linear(inputs, hidden)
        self.output = nn.Linear(hidden, classes)
        with torch.no_grad():
            for layer in (self.hidden, self.output):
                bound = layer.in_features**-0.5
                for parameter in (layer.weight, layer.bias):
                    parameter.uniform_(-bound, bound, generator=generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Log-probabilities, (examples, classes)."""
        return torch.log_softmax(self.output(torch.sigmoid(self.hidden(inputs))), dim=1)


def expected_score(log_probabilities: Tensor) -> Scores:
    """`sum of i * p_i` over the classes i = 1 to K: the predicted relatedness, (examples,)."""
    classes = torch.arange(1, log_probabilities.shape[1] + 1, dtype=log_probabilities.dtype)
    return (log_probabilities.detach().cpu().exp() @ classes).numpy().astype(np.float64)


def best_epoch(
    train: Callable[[], None],
    judge: Callable[[], float | None],
    keep: Callable[[], Kept],
    epochs: int,
    patience: int,
) -> tuple[Kept, float, int]:
    """Train until the development score has not risen for `patience` epochs, or to the last epoch.

    train: one epoch. judge: the development score after it, None where it is not defined. keep: a copy of
        what has been trained.

    Returns what was kept after the best epoch (the first of equals), its score (-inf where none was
    defined) and its number from 1.

    Raises:
        Interrupted: SIGTERM or Ctrl-C.
    """
    best: tuple[Kept, float, int] | None = None
    for epoch in range(1, epochs + 1):
        check_interrupt()
        train()
        found = judge()
        score = -np.inf if found is None or np.isnan(found) else found
        if best is None or score > best[1]:
            best = keep(), score, epoch
        if epoch - best[2] == patience:
            break
    assert best is not None
    return best
