"""Does the transfer tasks with a model's fixed embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.evaluation.similarity import Comparable, SentenceEmbedder
from pipeline.evaluation.transfer.classification import Labels, accuracy_on_test, cross_validated_accuracy
from pipeline.evaluation.transfer.features import features, fixed_embedder
from pipeline.evaluation.transfer.files import Examples
from pipeline.evaluation.transfer.relatedness import Scores, relatedness
from pipeline.evaluation.transfer.tasks import Task
from pipeline.progress import progress
from pipeline.scoring.vectors import FloatArray


@dataclass(frozen=True)
class TransferScore:
    """A model on one task.

    Attributes:
        accuracy: x 100, of a classification.
        pearson, spearman: x 100, of a relatedness.
        tested_on: `test`, `trial`, or `10-fold cross-validation`.
        repeated: test examples that stand in the training set too; without a split, examples that repeat
            an earlier one. They make a score look better than it is.
    """

    name: str
    accuracy: float | None
    pearson: float | None
    spearman: float | None
    tested_on: str
    train: int
    test: int
    repeated: int


def evaluate_transfer(model: Comparable, tasks: Sequence[Task], seed: int = 1) -> list[TransferScore]:
    """Do tasks one after the other.

    tasks: as `find_tasks` finds them.
    seed: draws folds and development examples, and starts the relatedness model; the same seed gives the
        same figures.

    Raises:
        InputError: a model without vectors.
        MissingPackageError: scikit-learn is not installed.
    """
    scores = []
    with progress(total=len(tasks), unit="tasks", description="transfer") as bar:
        for task in tasks:
            bar.status(task.name)
            scores.append(do_task(model, task, seed))
            bar.update(1)
    return scores


def do_task(model: Comparable, task: Task, seed: int = 1) -> TransferScore:
    """Do one task; see :func:`evaluate_transfer`."""
    embedder = fixed_embedder(model, task.train.texts)
    train = _seen(embedder, task.train)
    development = None if task.development is None else _seen(embedder, task.development)
    test = None if task.test is None else _seen(embedder, task.test)
    accuracy = pearson = spearman = None
    if test is None:
        accuracy = cross_validated_accuracy(*train, seed)
    elif task.kind == "classification":
        accuracy = accuracy_on_test(train, development, test, seed)
    else:
        held_out = None if development is None else _as_numbers(development)
        pearson, spearman = relatedness(_as_numbers(train), held_out, _as_numbers(test), seed)
    return TransferScore(
        task.name,
        accuracy,
        pearson,
        spearman,
        task.tested_on,
        len(task.train),
        len(task.train if task.test is None else task.test),
        task.train.repeats if task.test is None else task.test.repeated_in(task.train),
    )


def _seen(embedder: SentenceEmbedder, examples: Examples) -> tuple[FloatArray, Labels]:
    return features(embedder, examples), np.array(examples.labels)


def _as_numbers(seen: tuple[FloatArray, Labels]) -> tuple[FloatArray, Scores]:
    return seen[0], seen[1].astype(np.float64)
