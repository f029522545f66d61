"""Evaluates sentence embeddings on transfer tasks by logistic regression, with the penalty chosen on
development examples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError, require
from paraforge.base.progress import progress
from paraforge.base.word_vectors.vectors import FloatArray
from paraforge.embeddings.evaluation.comparing import Comparable, Model
from paraforge.papers.transfer.tasks import FOLDS, Examples, Task

PENALTIES: Final = (0.0001, 0.001, 0.01, 0.1, 1.0)
"""Candidate values of C, the inverse strength of the L2 penalty; features are standardized."""
FIXED: Final = "fixed"
_DEVELOPMENT_SHARE: Final = 0.1
_ITERATIONS: Final = 300
# Newton's method is faster up to about this many dimensions.
_NEWTON_DIMENSIONS: Final = 2500

Labels = npt.NDArray[np.str_]
Rows = npt.NDArray[np.int64]
Labeled = tuple[FloatArray, Labels]


@dataclass(frozen=True, kw_only=True)
class TransferScore:
    """A model's score on one task, x 100: accuracy (and F1 for MRPC on fixed embeddings), or correlations.

    tested_on: `test`, `trial`, or `10-fold cross-validation`. train, test: numbers of examples.
    training: `fixed`, or how the encoder was trained for the task.
    chosen: for a trained encoder, one entry per fold with the settings that differ from the defaults, the
        best epoch and its development score (None if undefined).
    """

    name: str
    accuracy: float | None = None
    pearson: float | None = None
    spearman: float | None = None
    tested_on: str
    train: int
    test: int
    training: str = FIXED
    chosen: list[dict[str, Any]] = field(default_factory=list)
    f1: float | None = None


def transfer_score(task: Task, folds: int, **figures: Any) -> TransferScore:
    """Make a score from figures and the task's description; `folds` is used if the task has no test set."""
    return TransferScore(
        name=task.name,
        tested_on=task.tested_on if task.test is not None else f"{folds}-fold cross-validation",
        train=len(task.train),
        test=len(task.train if task.test is None else task.test),
        **figures,
    )


def evaluate_transfer(
    model: Comparable, tasks: Sequence[Task], seed: int = 1, folds: int = FOLDS
) -> list[TransferScore]:
    """Evaluate fixed embeddings on tasks.

    folds: number of folds for tasks without a split.
    seed: decides folds, development examples and the start of the relatedness model; the same seed gives the
        same figures.

    Raises:
        InputError: the model has no vectors, or a class has too few examples to be divided.
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
    """Evaluate fixed embeddings on one task; see :func:`evaluate_transfer`."""
    embedder = fixed_embedder(model, task.train.texts)
    train, development, test = (
        (features(embedder, examples), np.array(examples.labels)) if examples is not None else None
        for examples in (task.train, task.development, task.test)
    )
    assert train is not None
    if test is None:
        vectors, labels = train
        accuracies = []
        for number, (fit, held_out) in enumerate(fold_examples(labels, seed, folds), start=1):
            predicted = predicted_on_test((vectors[fit], labels[fit]), None, vectors[held_out], seed + number)
            accuracies.append(100 * float(np.mean(predicted == labels[held_out])))
        return transfer_score(task, len(accuracies), accuracy=float(np.mean(accuracies)))
    if task.kind == "relatedness":
        from paraforge.papers.transfer.training import relatedness

        scored, judged, tested = (
            None if part is None else (part[0], part[1].astype(np.float64))
            for part in (train, development, test)
        )
        assert scored is not None
        assert tested is not None
        pearson, spearman = relatedness(scored, judged, tested, seed)
        return transfer_score(task, 0, pearson=pearson, spearman=spearman)
    predicted = predicted_on_test(train, development, test[0], seed)
    f1 = None
    if task.positive is not None:
        metrics = require("sklearn.metrics", "evaluation")
        f1 = 100 * metrics.f1_score(test[1], predicted, pos_label=task.positive, zero_division=0)
    return transfer_score(task, 0, accuracy=100 * float(np.mean(predicted == test[1])), f1=f1)


def fixed_embedder(model: Comparable, texts: Sequence[str]) -> Model:
    """Return the embedder for a task; an adaptive model adapts to the task's training texts.

    Raises InputError if the model has no vectors.
    """
    if not isinstance(model, Model):
        raise InputError(
            "transfer tasks need sentence vectors, and this model only compares pairs",
            remedy="Use a model that embeds sentences; the baselines only support --sts.",
        )
    return model.adapted_to(texts)


def features(embedder: Model, examples: Examples) -> FloatArray:
    """Return the vector u of each text, (examples, dimension) float32.

    For pairs, return |u - v| and u * v concatenated (W16 Eq. 12), (examples, 2 x dimension).
    """
    first = np.asarray(embedder.encode(examples.first), dtype=np.float32)
    if examples.second is None:
        return first
    second = np.asarray(embedder.encode(examples.second), dtype=np.float32)
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def predicted_on_test(train: Labeled, development: Labeled | None, test: FloatArray, seed: int) -> Labels:
    """Predict labels of test examples with the penalty that is best on the development examples.

    development: None to use a stratified random tenth of the training examples; the final classifier is then
        trained on all training examples.
    """
    fitting, judging = train, development
    if judging is None:
        fit, held_out = held_out_examples(train[1], seed)
        fitting, judging = (train[0][fit], train[1][fit]), (train[0][held_out], train[1][held_out])
    scores = [np.mean(_predict(fitting, judging[0], penalty) == judging[1]) for penalty in PENALTIES]
    return _predict(train, test, PENALTIES[int(np.argmax(scores))])


def fold_examples(labels: Labels, seed: int, folds: int = FOLDS) -> list[tuple[Rows, Rows]]:
    """Draw stratified training and test examples for each fold.

    Each class must have at least two examples; there are at most as many folds as the smallest class has.
    """
    selection = require("sklearn.model_selection", "evaluation")
    count = min(folds, int(np.unique(labels, return_counts=True)[1].min()))
    splitter = selection.StratifiedKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(labels, labels))


def held_out_examples(labels: Labels, seed: int) -> tuple[Rows, Rows]:
    """Split the examples randomly into nine tenths and one tenth, each with every class.

    The only example of a class goes to the first part. Raises InputError if every class has one example.
    """
    selection = require("sklearn.model_selection", "evaluation")
    _, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    alone = counts[classes] == 1
    if alone.all():
        raise InputError(
            "every class has a single example, so none is left to choose the penalty or the epoch"
        )
    divided = np.flatnonzero(~alone)
    fit, held_out = selection.train_test_split(
        divided,
        test_size=max(_DEVELOPMENT_SHARE, np.count_nonzero(counts > 1) / len(divided)),
        random_state=seed,
        stratify=labels[divided],
    )
    return np.concatenate([fit, np.flatnonzero(alone)]), held_out


def _predict(train: Labeled, test: FloatArray, penalty: float) -> Labels:
    linear_model = require("sklearn.linear_model", "evaluation")
    scaler = require("sklearn.preprocessing", "evaluation").StandardScaler()
    newton = len(np.unique(train[1])) == 2 and train[0].shape[1] <= _NEWTON_DIMENSIONS
    classifier = linear_model.LogisticRegression(
        C=penalty, solver="newton-cholesky" if newton else "lbfgs", max_iter=_ITERATIONS
    )
    with warnings.catch_warnings():
        # With a weak penalty the classifier may not converge; its result is used anyway.
        warnings.simplefilter("ignore")
        classifier.fit(scaler.fit_transform(train[0]), train[1])
    return np.asarray(classifier.predict(scaler.transform(test)))
