"""Does the transfer tasks with a model's fixed embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from paraforge.evaluation.similarity.comparing import Comparable, SentenceEmbedder
from paraforge.evaluation.transfer.classification import (
    FOLDS,
    Labels,
    accuracy_on_test,
    cross_validated_accuracy,
    fold_examples,
)
from paraforge.evaluation.transfer.features import features, fixed_embedder
from paraforge.evaluation.transfer.files import Examples
from paraforge.evaluation.transfer.network import Scores
from paraforge.evaluation.transfer.relatedness import relatedness
from paraforge.evaluation.transfer.tasks import Task
from paraforge.progress import progress
from paraforge.scoring.vectors import FloatArray

FIXED: Final = "fixed"


@dataclass(frozen=True)
class TransferScore:
    """A model on one task.

    Attributes:
        accuracy: x 100, of a classification.
        pearson, spearman: x 100, of a relatedness.
        tested_on: `test`, `trial`, or `10-fold cross-validation`.
        repeated: test examples that are in the training set too; without a split, examples that repeat
            an earlier one. They make a score look better than it is.
        training: `fixed`, or how the encoder was trained for the task.
        chosen: of an encoder that was trained, for each fold the settings that differ from the defaults, the
            best epoch and its development score.
    """

    name: str
    accuracy: float | None
    pearson: float | None
    spearman: float | None
    tested_on: str
    train: int
    test: int
    repeated: int
    training: str = FIXED
    chosen: list[dict[str, Any]] = field(default_factory=list)


def evaluate_transfer(
    model: Comparable, tasks: Sequence[Task], seed: int = 1, folds: int = FOLDS
) -> list[TransferScore]:
    """Do tasks one after the other, with fixed embeddings.

    tasks: as `find_tasks` finds them.
    folds: of tasks without a split.
    seed: draws folds and development examples, and starts the relatedness model; the same seed gives the
        same figures.

    Raises:
        InputError: a model without vectors, or too few examples of a class for two folds.
        MissingPackageError: scikit-learn is not installed.
    """
    scores = []
    with progress(total=len(tasks), unit="tasks", description="transfer") as bar:
        for task in tasks:
            bar.status(task.name)
            scores.append(do_task(model, task, seed, folds))
            bar.update(1)
    return scores


def do_task(model: Comparable, task: Task, seed: int = 1, folds: int = FOLDS) -> TransferScore:
    """Do one task; see :func:`evaluate_transfer`."""
    embedder = fixed_embedder(model, task.train.texts)
    train = _seen(embedder, task.train)
    development = None if task.development is None else _seen(embedder, task.development)
    test = None if task.test is None else _seen(embedder, task.test)
    accuracy = pearson = spearman = None
    if test is None:
        accuracy = cross_validated_accuracy(*train, seed, folds)
    elif task.kind == "classification":
        accuracy = accuracy_on_test(train, development, test, seed)
    else:
        held_out = None if development is None else _as_numbers(development)
        pearson, spearman = relatedness(_as_numbers(train), held_out, _as_numbers(test), seed)
    count = 0 if task.test is not None else len(fold_examples(train[1], seed, folds))
    return transfer_score(task, count, accuracy=accuracy, pearson=pearson, spearman=spearman)


def transfer_score(
    task: Task,
    folds: int,
    *,
    accuracy: float | None = None,
    pearson: float | None = None,
    spearman: float | None = None,
    training: str = FIXED,
    chosen: Sequence[dict[str, Any]] = (),
) -> TransferScore:
    """Figures with the task's own description; folds count where it has no test set."""
    return TransferScore(
        task.name,
        accuracy,
        pearson,
        spearman,
        task.tested_on if task.test is not None else f"{folds}-fold cross-validation",
        len(task.train),
        len(task.train if task.test is None else task.test),
        task.train.repeats if task.test is None else task.test.repeated_in(task.train),
        training,
        list(chosen),
    )


def _seen(embedder: SentenceEmbedder, examples: Examples) -> tuple[FloatArray, Labels]:
    return features(embedder, examples), np.array(examples.labels)


def _as_numbers(seen: tuple[FloatArray, Labels]) -> tuple[FloatArray, Scores]:
    return seen[0], seen[1].astype(np.float64)
