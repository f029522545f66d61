"""What classifiers see of a text or a pair of texts, and what a model scores on a transfer task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.word_vectors.vectors import FloatArray
from paraforge.embeddings.evaluation.similarity.comparing import Adaptive, Comparable, SentenceEmbedder
from paraforge.papers.transfer.tasks import Examples, Task

if TYPE_CHECKING:
    from torch import Tensor


def fixed_embedder(model: Comparable, texts: Sequence[str]) -> SentenceEmbedder:
    """The embedder that a task is done with; one that adapts sees the task's training texts. Raises
    InputError where the model gives no vectors."""
    if isinstance(model, Adaptive):
        model = model.adapted_to(texts)
    if not isinstance(model, SentenceEmbedder):
        raise InputError(
            "transfer tasks need vectors of sentences, and this only compares pairs",
            remedy="Give a model that embeds; the baselines are for --sts.",
        )
    return model


def features(embedder: SentenceEmbedder, examples: Examples) -> FloatArray:
    """The vector u of each text, (examples, dimension) float32; of pairs |u - v| and u * v side by side (W16
    Eq. 12), (examples, 2 x dimension)."""
    first = np.asarray(embedder.encode(examples.first), dtype=np.float32)
    if examples.second is None:
        return first
    second = np.asarray(embedder.encode(examples.second), dtype=np.float32)
    import torch  # takes seconds

    return pair_features(torch.from_numpy(first), torch.from_numpy(second)).numpy()


def pair_features(first: Tensor, second: Tensor) -> Tensor:
    """|u - v| and u * v side by side, (pairs, 2 x dimension)."""
    import torch

    return torch.cat([(first - second).abs(), first * second], dim=1)


def standardiser(train: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column of the training examples, 1 in place of 0."""
    deviation = train.std(axis=0)
    return train.mean(axis=0), np.where(deviation > 0, deviation, 1).astype(np.float32)


def standardised(values: FloatArray, by: tuple[FloatArray, FloatArray]) -> npt.NDArray[np.float32]:
    """Columns with the mean 0 and the standard deviation 1 on the training examples."""
    return ((values - by[0]) / by[1]).astype(np.float32)


FIXED: Final = "fixed"


@dataclass(frozen=True, kw_only=True)
class TransferScore:
    """A model on one task; figures are x 100, of a classification accuracy and of MRPC on fixed
    embeddings F1 as well, of a relatedness the others.

    tested_on: `test`, `trial`, or `10-fold cross-validation`.
    repeated: test examples that are in the training set too; without a split, examples that repeat an earlier
        one. They make a score look better than it is.
    training: `fixed`, or how the encoder was trained for the task. chosen: if so, for each fold the settings
        that differ from the defaults, the best epoch and its development score, None where none is defined.
    """

    name: str
    accuracy: float | None = None
    pearson: float | None = None
    spearman: float | None = None
    tested_on: str
    train: int
    test: int
    repeated: int
    training: str = FIXED
    chosen: list[dict[str, Any]] = field(default_factory=list)
    f1: float | None = None


def transfer_score(task: Task, folds: int, **figures: Any) -> TransferScore:
    """Figures with the task's own description; folds count where it has no test set."""
    return TransferScore(
        name=task.name,
        tested_on=task.tested_on if task.test is not None else f"{folds}-fold cross-validation",
        train=len(task.train),
        test=len(task.train if task.test is None else task.test),
        repeated=task.train.repeats if task.test is None else task.test.repeated_in(task.train),
        **figures,
    )


def f1_score(predicted: Sequence[str], labels: Sequence[str], positive: str) -> float:
    """F1 x 100 of one class: the harmonic mean of its precision and recall; 0 where it is never right."""
    right = sum(one == other == positive for one, other in zip(predicted, labels, strict=True))
    found = sum(one == positive for one in predicted) + sum(one == positive for one in labels)
    return 200 * right / found if found else 0.0
