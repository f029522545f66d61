"""Does the transfer tasks with a model's fixed embeddings: logistic regression on them, its penalty chosen on
development examples."""

import warnings
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError, require
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.word_vectors.vectors import FloatArray
from paraforge.embeddings.evaluation.similarity.comparing import Comparable, SentenceEmbedder
from paraforge.papers.transfer.relatedness import Scores, relatedness
from paraforge.papers.transfer.scores import (
    TransferScore,
    f1_score,
    features,
    fixed_embedder,
    standardised,
    standardiser,
    transfer_score,
)
from paraforge.papers.transfer.tasks import FOLDS, Examples, Task

DEVELOPMENT_SHARE: Final = 0.1
PENALTIES: Final = (0.0001, 0.001, 0.01, 0.1, 1.0)
"""Inverse strengths C of the L2 penalty that are tried, over standardised features."""
_ITERATIONS: Final = 300
# Newton's method solves for all dimensions at once: fast while they are few.
_NEWTON_DIMENSIONS: Final = 2500

Labels = npt.NDArray[np.str_]
Rows = npt.NDArray[np.int64]


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


def predicted_on_test(
    train: tuple[FloatArray, Labels],
    development: tuple[FloatArray, Labels] | None,
    test: FloatArray,
    seed: int,
) -> Labels:
    """Labels of the test examples by a classifier whose penalty did best on the development examples.

    development: None: a tenth of the training examples, drawn by seed with the classes' shares; the chosen
        penalty is then trained on all of them.
    """
    if development is None:
        fit, held_out = held_out_examples(train[1], seed)
        fitted = (train[0][fit], train[1][fit]), (train[0][held_out], train[1][held_out])
    else:
        fitted = train, development
    fitting, judging = fitted
    scores = [_share(_predicted(fitting, judging[0], penalty), judging[1]) for penalty in PENALTIES]
    return _predicted(train, test, PENALTIES[int(np.argmax(scores))])


def cross_validated_accuracy(examples: FloatArray, labels: Labels, seed: int, folds: int = FOLDS) -> float:
    """Mean accuracy x 100 over folds, see :func:`fold_examples`; within each the penalty is chosen on a tenth
    of its training examples."""
    accuracies = []
    for fold, (fit, held_out) in enumerate(fold_examples(labels, seed, folds)):
        train = examples[fit], labels[fit]
        predicted = predicted_on_test(train, None, examples[held_out], seed + fold + 1)
        accuracies.append(100 * _share(predicted, labels[held_out]))
    return float(np.mean(accuracies))


def fold_examples(labels: Labels, seed: int, folds: int = FOLDS) -> list[tuple[Rows, Rows]]:
    """Numbers of the training and of the test examples of each fold, drawn by seed with the classes' shares;
    fewer folds where a class has fewer examples, InputError where it has one."""
    selection = require("sklearn.model_selection", "evaluation")
    count = int(min(folds, np.unique(labels, return_counts=True)[1].min()))
    if count < 2:
        raise InputError("a class has a single example, cross-validation needs two of each")
    splitter = selection.StratifiedKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(labels, labels))


def held_out_examples(labels: Labels, seed: int) -> tuple[Rows, Rows]:
    """Numbers of nine tenths and of one tenth of the examples, with every class in both if that can be."""
    selection = require("sklearn.model_selection", "evaluation")
    counts = np.unique(labels, return_counts=True)[1]
    share = max(DEVELOPMENT_SHARE, len(counts) / len(labels))
    fit, held_out = selection.train_test_split(
        np.arange(len(labels)),
        test_size=share,
        random_state=seed,
        stratify=labels if counts.min() >= 2 else None,
    )
    return fit, held_out


def _share(predicted: Labels, labels: Labels) -> float:
    return float(np.mean(predicted == labels))


def _predicted(train: tuple[FloatArray, Labels], test: FloatArray, penalty: float) -> Labels:
    check_interrupt()
    linear_model = require("sklearn.linear_model", "evaluation")
    by = standardiser(train[0])
    binary = len(np.unique(train[1])) == 2
    newton = binary and train[0].shape[1] <= _NEWTON_DIMENSIONS
    classifier = linear_model.LogisticRegression(
        C=penalty, solver="newton-cholesky" if newton else "lbfgs", max_iter=_ITERATIONS
    )
    with warnings.catch_warnings():
        # A weak penalty may not converge in time; it is then one candidate among others.
        warnings.simplefilter("ignore")
        classifier.fit(standardised(train[0], by), train[1])
    return np.asarray(classifier.predict(standardised(test, by)))
