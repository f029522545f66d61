"""Relatedness of sentence pairs by the KL objective (Wieting 2016, Eq. 12-14; Tai 2015) on fixed
embeddings."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from paraforge.base.devices import torch_threads
from paraforge.base.interrupts import check_interrupt
from paraforge.base.word_vectors.vectors import FloatArray
from paraforge.embeddings.evaluation.correlation import pearson, spearman
from paraforge.papers.transfer.scores import standardised, standardiser

CLASSES: Final = 5
HIDDEN: Final = 50
EPOCHS: Final = 40
PATIENCE: Final = 6
BATCH: Final = 25
LEARNING_RATE: Final = 1e-3
PENALTY: Final = 1e-4
"""Of the squared parameters (L2)."""


def target_distribution(scores: Scores) -> npt.NDArray[np.float64]:
    """The sparse distribution p with `sum of i * p_i = y` (W16 Eq. 13): y = 2.3 gives p_2 = 0.7, p_3 = 0.3.

    scores: y, 1 to `CLASSES`. Returns (scores, CLASSES), rows that sum to 1; column i - 1 is class i.
    """
    below = np.floor(scores).astype(np.int64)
    rest = scores - below
    target = np.zeros((len(scores), CLASSES))
    rows = np.arange(len(scores))
    target[rows, below - 1] = 1 - rest
    above = rest > 0
    target[rows[above], below[above]] = rest[above]
    return target


def relatedness(
    train: tuple[FloatArray, Scores],
    development: tuple[FloatArray, Scores] | None,
    test: tuple[FloatArray, Scores],
    seed: int,
) -> tuple[float | None, float | None]:
    """Pearson and Spearman x 100 on the test pairs, of the epoch that was best on the development pairs.

    train, development, test: features (pairs, numbers) and scores from 1 to 5.
    development: None means a tenth of the training pairs, drawn by seed, which are then not trained on.
    """
    if development is None:
        fit, held_out = held_out_pairs(len(train[1]), seed)
        development = train[0][held_out], train[1][held_out]
        train = train[0][fit], train[1][fit]
    by = standardiser(train[0])
    inputs, development_inputs, test_inputs = (
        torch.from_numpy(standardised(values, by)) for values, _ in (train, development, test)
    )
    targets = torch.from_numpy(target_distribution(train[1]).astype(np.float32))
    # Mini-batches this small are slower with several threads; with one the figures are always the same.
    with torch_threads(1), torch.no_grad():
        model = _train(inputs, targets, development_inputs, development[1], seed)
        predicted = expected_score(model(test_inputs))
    return pearson(test[1], predicted), spearman(test[1], predicted)


def held_out_pairs(pairs: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers of nine tenths and of one tenth of the pairs, drawn by seed."""
    order = np.random.default_rng(seed).permutation(pairs)
    cut = max(1, pairs // 10)
    return order[cut:], order[:cut]


def _train(
    inputs: Tensor, targets: Tensor, development_inputs: Tensor, development_scores: Scores, seed: int
) -> SigmoidSoftmax:
    generator = torch.Generator().manual_seed(seed)
    model = SigmoidSoftmax(inputs.shape[1], HIDDEN, targets.shape[1], generator)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=PENALTY)
    divergence = nn.KLDivLoss(reduction="batchmean")

    @torch.enable_grad()
    def train() -> None:
        for rows in torch.randperm(len(inputs), generator=generator).split(BATCH):
            optimiser.zero_grad()
            divergence(model(inputs[rows]), targets[rows]).backward()  # Eq. 14
            optimiser.step()

    def judge() -> float | None:
        return pearson(development_scores, expected_score(model(development_inputs)))

    best, _, _ = best_epoch(train, judge, lambda: copy.deepcopy(model), EPOCHS, PATIENCE)
    return best


Scores = npt.NDArray[np.float64]
Kept = TypeVar("Kept")


class SigmoidSoftmax(nn.Module):
    """`softmax(W_p * sigmoid(W x + b_h) + b_p)` over the classes. Over a pair x is |u - v| and u * v
    together, so that W holds W_+ and W_x of W16 Eq. 12."""

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

    Returns what was kept after the best epoch (the first of equals), its score (-inf where none was defined)
    and its number from 1.
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
