"""Evaluates a model on everything that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paraforge.embeddings.model import SentenceModel
from paraforge.errors import ConfigurationError, InputError
from paraforge.evaluation.details import by_length, difference
from paraforge.evaluation.opening import OpenedModel, open_model
from paraforge.evaluation.report import Evaluation
from paraforge.evaluation.similarity import Adaptive, SentenceEmbedder
from paraforge.evaluation.sts import compare, evaluate_sts, score
from paraforge.evaluation.sts_sets import read_sets
from paraforge.evaluation.transfer.classification import FOLDS
from paraforge.evaluation.transfer.end_to_end import Variant, fine_tune_transfer
from paraforge.evaluation.transfer.evaluate import evaluate_transfer
from paraforge.evaluation.transfer.tasks import TASKS, find_tasks
from paraforge.evaluation.word_lists import Correlation, SimilarityList, read_similarity_lists
from paraforge.evaluation.words import evaluate_words


def evaluate(
    name: str,
    *,
    sts: Sequence[Path] = (),
    word_lists: Sequence[Path] = (),
    transfer: Sequence[Path] = (),
    task_names: Sequence[str] = (),
    fine_tune: Sequence[Variant] = (),
    fine_tune_kept: Path | None = None,
    folds: int = FOLDS,
    lengths: bool = False,
    beside: Sequence[str] = (),
    against: Sequence[str] = (),
    seed: int = 1,
    device: str = "cpu",
) -> Evaluation:
    """Evaluate a model, and others beside it.

    name: see :func:`~paraforge.evaluation.opening.open_model`.
    sts: files and directories of scored sentence pairs.
    word_lists: word similarity, for models that give a word a vector.
    transfer: directories of transfer tasks; SICK is looked for in the directories of `sts` too.
    task_names: which of them, as in `TASKS`; none: all. folds: of tasks without a split.
    fine_tune: ways to train a copy of the model for each task, beside the fixed embeddings; for a trained
        model of this project. fine_tune_kept: where each fit's result is kept, and taken from.
    lengths: whether STS is told by length too.
    beside: other models whose STS scores are told too. against: the same, and how far they differ.
    seed: of the transfer tasks.

    All files are read and all models opened before anything is computed.

    Raises:
        ConfigurationError: nothing is asked for, or something that needs `sts` without it.
        InputError: a file or model that cannot be read, with file and line.
    """
    _check(sts, word_lists, transfer, lengths, [*beside, *against])
    _check_tasks(transfer, task_names, fine_tune)
    sets = read_sets(sts) if sts else []
    lists = read_similarity_lists(word_lists)
    sentences = [sentence for pairs in sets for sentence in pairs.sentences]
    directories = [*transfer, *(path for path in sts if path.is_dir())] if transfer else []
    tasks, missing = find_tasks(directories, task_names or TASKS)
    if transfer and not tasks:
        raise InputError(
            "no transfer task here", transfer[0], remedy="docs/evaluation.md tells the names of their files."
        )
    opened = open_model(name, sentences, device)
    if tasks and not isinstance(opened.model, SentenceEmbedder | Adaptive):
        raise ConfigurationError([f"--transfer: {name} only compares pairs; give a model that embeds"])
    if fine_tune and not isinstance(opened.model, SentenceModel):
        raise ConfigurationError(
            [f"--fine-tune: {name} ({opened.kind}) has no encoder to train; give what paraforge train wrote"]
        )
    others = {other: open_model(other, sentences, device) for other in dict.fromkeys([*beside, *against])}
    result = Evaluation(opened.name, opened.kind)
    result.words = {judgements.name: _words(opened, judgements) for judgements in lists}
    if sets:
        compared = compare(opened.model, sets)
        result.sts = score(compared)
        result.lengths = by_length(compared) if lengths else []
        result.beside = {other: evaluate_sts(model.model, sets) for other, model in others.items()}
        result.differences = {other: difference(result.sts, result.beside[other]) for other in against}
    if transfer:
        result.transfer, result.missing = evaluate_transfer(opened.model, tasks, seed, folds), missing
    if fine_tune:
        assert isinstance(opened.model, SentenceModel)
        result.transfer += fine_tune_transfer(opened.model, tasks, fine_tune, seed, folds, fine_tune_kept)
    return result


def _check(
    sts: Sequence[Path],
    word_lists: Sequence[Path],
    transfer: Sequence[Path],
    lengths: bool,
    others: Sequence[str],
) -> None:
    problems = []
    if not (sts or word_lists or transfer):
        problems.append("nothing to evaluate on: give --sts, --similarity or --transfer")
    if not sts and lengths:
        problems.append("--by-length needs --sts")
    if not sts and others:
        problems.append("--baseline and --against need --sts")
    problems += [f"--transfer {path}: no such directory" for path in transfer if not path.is_dir()]
    if problems:
        raise ConfigurationError(problems)


def _check_tasks(transfer: Sequence[Path], names: Sequence[str], fine_tune: Sequence[Variant]) -> None:
    problems = [f"--task {name}: there are {', '.join(TASKS)}" for name in names if name not in TASKS]
    if not transfer and (names or fine_tune):
        problems.append("--task and --fine-tune need --transfer")
    if problems:
        raise ConfigurationError(problems)


def _words(opened: OpenedModel, judgements: SimilarityList) -> Correlation:
    if opened.words is not None:
        return evaluate_words(opened.words, judgements)
    if isinstance(opened.model, SentenceEmbedder):
        return evaluate_words(opened.model, judgements)
    raise ConfigurationError([f"--similarity: {opened.name} gives words no vectors"])
