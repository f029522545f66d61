"""Logistic regression on fixed sentence embeddings, its penalty chosen on development examples."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pipeline.errors import require
from pipeline.evaluation.transfer.features import standardised, standardiser
from pipeline.interrupts import check_interrupt
from pipeline.scoring.vectors import FloatArray

FOLDS: Final = 10
DEVELOPMENT_SHARE: Final = 0.1
PENALTIES: Final = (0.0001, 0.001, 0.01, 0.1, 1.0)
"""Inverse strengths C of the L2 penalty that are tried, over standardised features."""
_ITERATIONS: Final = 300
# Newton's method solves for all dimensions at once: fast while they are few.
_NEWTON_DIMENSIONS: Final = 2500

Labels = npt.NDArray[np.str_]


def accuracy_on_test(
    train: tuple[FloatArray, Labels],
    development: tuple[FloatArray, Labels] | None,
    test: tuple[FloatArray, Labels],
    seed: int,
) -> float:
    """Accuracy x 100 on the test examples of a classifier whose penalty did best on the development examples.

    development: None means a tenth of the training examples, drawn by seed with the classes' shares; the
        chosen penalty is then trained on all of them.
    """
    if development is None:
        fit, held_out = _split(train[1], seed)
        fitted = (train[0][fit], train[1][fit]), (train[0][held_out], train[1][held_out])
    else:
        fitted = train, development
    scores = [_accuracy(*fitted, penalty) for penalty in PENALTIES]
    best = PENALTIES[int(np.argmax(scores))]
    return 100 * _accuracy(train, test, best)


def cross_validated_accuracy(examples: FloatArray, labels: Labels, seed: int) -> float:
    """Mean accuracy x 100 over ten folds, drawn by seed with the classes' shares; within each the penalty is
    chosen on a tenth of its training examples. Fewer folds where a class has fewer examples."""
    selection = require("sklearn.model_selection", "evaluation")
    folds = int(min(FOLDS, np.unique(labels, return_counts=True)[1].min()))
    splitter = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    accuracies = [
        accuracy_on_test(
            (examples[fit], labels[fit]), None, (examples[held_out], labels[held_out]), seed + fold + 1
        )
        for fold, (fit, held_out) in enumerate(splitter.split(examples, labels))
    ]
    return float(np.mean(accuracies))


def _split(labels: Labels, seed: int) -> tuple[Any, Any]:
    """Numbers of nine tenths and of one tenth of the examples, with every class in both if that can be."""
    selection = require("sklearn.model_selection", "evaluation")
    counts = np.unique(labels, return_counts=True)[1]
    share = max(DEVELOPMENT_SHARE, len(counts) / len(labels))
    return tuple(
        selection.train_test_split(
            np.arange(len(labels)),
            test_size=share,
            random_state=seed,
            stratify=labels if counts.min() >= 2 else None,
        )
    )


def _accuracy(train: tuple[FloatArray, Labels], test: tuple[FloatArray, Labels], penalty: float) -> float:
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
    return float(np.mean(classifier.predict(standardised(test[0], by)) == test[1]))
