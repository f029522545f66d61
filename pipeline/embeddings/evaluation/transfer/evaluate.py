"""Does the transfer tasks with a model's fixed embeddings."""

from collections.abc import Sequence

import numpy as np

from paraforge.base.progress import progress
from paraforge.base.word_vectors.vectors import FloatArray
from paraforge.embeddings.evaluation.similarity.comparing import Comparable, SentenceEmbedder
from paraforge.embeddings.evaluation.transfer.classification import (
    Labels,
    cross_validated_accuracy,
    fold_examples,
    predicted_on_test,
)
from paraforge.embeddings.evaluation.transfer.files import Examples
from paraforge.embeddings.evaluation.transfer.relatedness import Scores, relatedness
from paraforge.embeddings.evaluation.transfer.scores import (
    TransferScore,
    f1_score,
    features,
    fixed_embedder,
    transfer_score,
)
from paraforge.embeddings.evaluation.transfer.tasks import FOLDS, Task


def evaluate_transfer(
    model: Comparable, tasks: Sequence[Task], seed: int = 1, folds: int = FOLDS
) -> list[TransferScore]:
    """Do tasks one after the other, with fixed embeddings.

    folds: of tasks without a split. seed: draws folds and development examples, and starts the relatedness
        model; the same seed gives the same figures.

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
    accuracy = f1 = pearson = spearman = None
    if test is None:
        accuracy = cross_validated_accuracy(*train, seed, folds)
    elif task.kind == "classification":
        predicted = predicted_on_test(train, development, test[0], seed)
        accuracy = 100 * float(np.mean(predicted == test[1]))
        if task.positive is not None:
            f1 = f1_score(predicted.tolist(), test[1].tolist(), task.positive)
    else:
        held_out = None if development is None else _as_numbers(development)
        pearson, spearman = relatedness(_as_numbers(train), held_out, _as_numbers(test), seed)
    count = 0 if task.test is not None else len(fold_examples(train[1], seed, folds))
    return transfer_score(task, count, accuracy=accuracy, f1=f1, pearson=pearson, spearman=spearman)


def _seen(embedder: SentenceEmbedder, examples: Examples) -> tuple[FloatArray, Labels]:
    return features(embedder, examples), np.array(examples.labels)


def _as_numbers(seen: tuple[FloatArray, Labels]) -> tuple[FloatArray, Scores]:
    return seen[0], seen[1].astype(np.float64)
