"""Evaluates a model on transfer tasks by training copies of it end to end, in one or several variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from paraforge.base.errors import ConfigurationError
from paraforge.base.progress import progress
from paraforge.embeddings.evaluation.averages import WordAverage
from paraforge.embeddings.evaluation.comparing import OpenedModel, mean, pearson, spearman
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.interface.cli.settings import with_settings
from paraforge.papers.transfer.evaluate import (
    TransferScore,
    fold_examples,
    held_out_examples,
    transfer_score,
)
from paraforge.papers.transfer.tasks import FOLDS, Examples, Task
from paraforge.papers.transfer.training import (
    FineTuningParameters,
    Fitted,
    Split,
    average_as_encoder,
    fine_tune,
    held_out_pairs,
)

TRAINED, PENALIZED, RANDOM = "fine-tuned", "fine-tuned, L2", "from random"


@dataclass(frozen=True)
class Variant:
    """A variant of training, with candidate settings; the setting with the best development score is used."""

    name: str
    candidates: tuple[FineTuningParameters, ...]


def make_variants(
    starts: Sequence[str] = ("trained",),
    penalties: Sequence[float] = (),
    settings: Mapping[str, Sequence[str]] | None = None,
) -> list[Variant]:
    """Return the variants that a user asks for.

    starts: `trained` fine-tunes the model without a penalty, `random` trains from scratch.
    penalties: if given, fine-tuning with the best of these penalties is another variant (W16 4.4.1).
    settings: values of other `FineTuningParameters`; each variant tries every combination.
    Raises ConfigurationError if settings are unknown or invalid, or if no start takes the penalties.
    """
    settings = settings or {}
    if penalties and "trained" not in starts:
        raise ConfigurationError(["--fine-tune-penalty needs --fine-tune-from trained"])
    grids: list[tuple[str, list[dict[str, Any]]]] = []
    for start in dict.fromkeys(starts):
        grids.append((TRAINED if start == "trained" else RANDOM, [{"start": start}]))
        if penalties and start == "trained":
            both = [{"lambda_words": value, "lambda_composition": value} for value in penalties]
            grids.append((PENALIZED, both))
    others = [
        [f"{key}={value}" for key, value in zip(settings, values, strict=True)]
        for values in product(*settings.values())
    ]
    return [
        Variant(
            name, tuple(with_settings(FineTuningParameters, other, own) for own in grid for other in others)
        )
        for name, grid in grids
    ]


def encoder_of(opened: OpenedModel, tasks: Sequence[Task]) -> SentenceModel:
    """Return the encoder to train for tasks.

    An average of word vectors is converted to an encoder for the tasks' words.
    Raises ConfigurationError if the model has no encoder to train.
    """
    model = opened.model
    if isinstance(model, WordAverage) and not model.of_each_set:
        parts = [part for task in tasks for part in (task.train, task.development, task.test) if part]
        return average_as_encoder(model, [text for part in parts for text in part.texts])
    if not isinstance(model, SentenceModel):
        problem = f"--fine-tune: {opened.name} ({opened.kind}) has no encoder to train"
        remedy = "use a model from paraforge train, word vectors, or SIF with --components 0 or --fit"
        raise ConfigurationError([f"{problem}; {remedy}"])
    return model


def fine_tune_transfer(
    model: SentenceModel,
    tasks: Sequence[Task],
    variants: Sequence[Variant],
    seed: int = 1,
    folds: int = FOLDS,
) -> list[TransferScore]:
    """Fine-tune copies of a model for each task and variant, and evaluate them.

    seed: decides folds and development examples as in :func:`evaluate_transfer`, and the training; on a CPU,
        the same seed gives the same figures.
    folds: number of folds for tasks without a split.

    Raises InputError if a class has too few examples to be divided, or a loss is not finite.
    """
    splits = {task.name: task_splits(task, seed, folds) for task in tasks}
    total = len(variants) * sum(map(len, splits.values()))
    scores = []
    with progress(total=total, unit="fits", description="fine-tune") as bar:
        for task, variant in product(tasks, variants):
            fits = []
            for number, split in enumerate(splits[task.name]):
                bar.status(f"{task.name}, {variant.name}")
                fits.append(_figures(split, fine_tune(model, split, variant.candidates, seed + number)))
                bar.update(1)
            scores.append(_score(task, variant, fits))
    return scores


def task_splits(task: Task, seed: int, folds: int) -> list[Split]:
    """Return the task's split, or one split per fold if the task has no test set.

    Without development examples, a random tenth of the training examples is used for development.
    """
    if task.test is not None:
        return [_split(task, task.train, task.development, task.test, seed)]
    labels = np.array(task.train.labels)
    return [
        _split(task, task.train.select(fit), None, task.train.select(held_out), seed + fold + 1)
        for fold, (fit, held_out) in enumerate(fold_examples(labels, seed, folds))
    ]


def _split(task: Task, train: Examples, development: Examples | None, test: Examples, seed: int) -> Split:
    if development is None:
        if task.kind == "relatedness":
            fit, held_out = held_out_pairs(len(train), seed)
        else:
            fit, held_out = held_out_examples(np.array(train.labels), seed)
        train, development = train.select(fit), train.select(held_out)
    return Split(task.kind, train, development, test)


def _figures(split: Split, fitted: Fitted) -> dict[str, Any]:
    chosen = {
        **fitted.parameters.model_dump(exclude_defaults=True),
        "epoch": fitted.epoch,
        "development_score": fitted.development_score,
    }
    if split.kind == "classification":
        right = fitted.predictions == np.array(split.test.labels)
        return {"accuracy": 100 * float(np.mean(right)), "chosen": chosen}
    gold = np.array(split.test.labels, dtype=np.float64)
    both = {"pearson": pearson(gold, fitted.predictions), "spearman": spearman(gold, fitted.predictions)}
    return {**both, "chosen": chosen}


def _score(task: Task, variant: Variant, fits: Sequence[Mapping[str, Any]]) -> TransferScore:
    """Average the figures over folds."""
    figures = {name: mean([fit[name] for fit in fits]) for name in fits[0] if name != "chosen"}
    chosen = [fit["chosen"] for fit in fits]
    return transfer_score(task, len(fits), training=variant.name, chosen=chosen, **figures)
