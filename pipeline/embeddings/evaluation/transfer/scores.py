"""What a model scores on a transfer task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from paraforge.embeddings.evaluation.transfer.tasks import Task

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
