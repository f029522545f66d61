"""Relatedness of sentence pairs by the KL objective (Wieting 2016, Eq. 12-14; Tai 2015) on fixed
embeddings."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pipeline.evaluation.correlation import pearson, spearman
from pipeline.evaluation.transfer.features import standardised, standardiser
from pipeline.interrupts import check_interrupt
from pipeline.scoring.vectors import FloatArray

CLASSES: Final = 5
HIDDEN: Final = 50
EPOCHS: Final = 40
PATIENCE: Final = 6
BATCH: Final = 25
LEARNING_RATE: Final = 1e-3
PENALTY: Final = 1e-4
"""Of the squared parameters (L2)."""

Scores = npt.NDArray[np.float64]


def target_distribution(scores: Scores, classes: int = CLASSES) -> npt.NDArray[np.float64]:
    """The sparse distribution p with `sum of i * p_i = y` (W16 Eq. 13): y = 2.3 gives p_2 = 0.7, p_3 = 0.3.

    scores: y, 1 to `classes`. Returns (scores, classes), rows that sum to 1; column i - 1 is class i.
    """
    below = np.floor(scores).astype(np.int64)
    rest = scores - below
    target = np.zeros((len(scores), classes))
    rows = np.arange(len(scores))
    target[rows, below - 1] = 1 - rest
    above = rest > 0
    target[rows[above], below[above]] = rest[above]
    return target


class Relatedness(nn.Module):
    """`softmax(W_p * sigmoid(W_x (u * v) + W_+ |u - v| + b_h) + b_p)` over the classes 1 to K.

    inputs: numbers of |u - v| and u * v together.
    """

    def __init__(self, inputs: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.hidden = nn.Linear(inputs, HIDDEN)
        self.output = nn.Linear(HIDDEN, classes)
        with torch.no_grad():
            for layer in (self.hidden, self.output):
                bound = layer.in_features**-0.5
                for parameter in (layer.weight, layer.bias):
                    parameter.uniform_(-bound, bound, generator=generator)

    def forward(self, pairs: Tensor) -> Tensor:
        """Log-probabilities, (pairs, classes)."""
        return torch.log_softmax(self.output(torch.sigmoid(self.hidden(pairs))), dim=1)

    def scores(self, pairs: Tensor) -> Scores:
        """Expected class, 1 to K: the predicted score."""
        with torch.no_grad():
            probabilities = self(pairs).exp()
        classes = torch.arange(1, probabilities.shape[1] + 1, dtype=probabilities.dtype)
        return (probabilities @ classes).numpy().astype(np.float64)


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
        order = np.random.default_rng(seed).permutation(len(train[1]))
        cut = max(1, len(order) // 10)
        development = train[0][order[:cut]], train[1][order[:cut]]
        train = train[0][order[cut:]], train[1][order[cut:]]
    by = standardiser(train[0])
    inputs, development_inputs, test_inputs = (
        torch.from_numpy(standardised(values, by)) for values, _ in (train, development, test)
    )
    targets = torch.from_numpy(target_distribution(train[1]).astype(np.float32))
    with _one_thread():
        model = _train(inputs, targets, development_inputs, development[1], seed)
        predicted = model.scores(test_inputs)
    return pearson(test[1], predicted), spearman(test[1], predicted)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Mini-batches this small are slower with several threads; with one the figures are always the same."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _train(
    inputs: Tensor, targets: Tensor, development_inputs: Tensor, development_scores: Scores, seed: int
) -> Relatedness:
    generator = torch.Generator().manual_seed(seed)
    model = Relatedness(inputs.shape[1], targets.shape[1], generator)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=PENALTY)
    divergence = nn.KLDivLoss(reduction="batchmean")
    best_score, best, without_gain = -np.inf, model, 0
    for _ in range(EPOCHS):
        check_interrupt()
        for rows in torch.randperm(len(inputs), generator=generator).split(BATCH):
            optimiser.zero_grad()
            divergence(model(inputs[rows]), targets[rows]).backward()  # Eq. 14
            optimiser.step()
        score = pearson(development_scores, model.scores(development_inputs)) or -np.inf
        without_gain += 1
        if score > best_score:
            best_score, best, without_gain = score, copy.deepcopy(model), 0
        if without_gain == PATIENCE:
            break
    return best
