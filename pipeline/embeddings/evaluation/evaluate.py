"""Evaluates a model on everything that is asked for."""

from collections.abc import Callable, Sequence
from pathlib import Path

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.embeddings.evaluation.results import Evaluation
from paraforge.embeddings.evaluation.sets.finding import read_sets
from paraforge.embeddings.evaluation.similarity.comparing import Adaptive, OpenedModel, SentenceEmbedder
from paraforge.embeddings.evaluation.similarity.sts import by_length, compare, difference, evaluate_sts, score
from paraforge.embeddings.evaluation.similarity.word_lists import (
    Correlation,
    SimilarityList,
    evaluate_words,
    read_similarity_lists,
)
from paraforge.embeddings.evaluation.transfer.scores import TransferScore
from paraforge.embeddings.evaluation.transfer.tasks import FOLDS, Task, find_tasks, transfer_tasks

OpenModel = Callable[[str, Sequence[str]], OpenedModel]
FineTuner = Callable[[OpenedModel], Callable[[Sequence[Task]], list[TransferScore]]]


def evaluate(
    name: str,
    open_model: OpenModel,
    *,
    sts: Sequence[Path] = (),
    word_lists: Sequence[Path] = (),
    transfer: Sequence[Path] = (),
    task_names: Sequence[str] = (),
    fine_tuner: FineTuner | None = None,
    folds: int = FOLDS,
    lengths: bool = False,
    beside: Sequence[str] = (),
    against: Sequence[str] = (),
    seed: int = 1,
) -> Evaluation:
    """Evaluate a model, and others for comparison. All files are read and all models opened before anything
    is computed.

    name, open_model: the model's name, and what opens it: given the name and the sentences that a baseline is
        fitted on; e.g. :func:`paraforge.products.loading.open_model`.
    sts: files and directories of scored sentence pairs. lengths: whether they are reported by length, too.
    word_lists: word similarity, for models that give a word a vector.
    transfer: directories of transfer tasks; SICK is looked for in the directories of `sts` too.
    task_names: which of :func:`transfer_tasks`; none: all. folds: of tasks without a split. seed: of the
        tasks.
    fine_tuner: trains copies of the model for the tasks, in addition to the fixed embeddings, e.g.
        :func:`paraforge.embeddings.fine_tuning.transfer.fine_tuner`.
    beside: other models whose STS scores are reported, too. against: the same, and how far they differ.

    Raises:
        ConfigurationError: nothing is asked for, or something that needs `sts` without it.
        InputError: a file or model that cannot be read, with file and line.
    """
    known = transfer_tasks()
    problems = [f"--task {name}: there are {', '.join(known)}" for name in task_names if name not in known]
    if not (sts or word_lists or transfer):
        problems.append("nothing to evaluate on: give --sts, --similarity or --transfer")
    if not sts and lengths:
        problems.append("--by-length needs --sts")
    if not sts and (beside or against):
        problems.append("--baseline and --against need --sts")
    if not transfer and (task_names or fine_tuner is not None):
        problems.append("--task and --fine-tune need --transfer")
    problems += [f"--transfer {path}: no such directory" for path in transfer if not path.is_dir()]
    if problems:
        raise ConfigurationError(problems)
    sets = read_sets(sts) if sts else []
    lists = read_similarity_lists(word_lists)
    sentences = [sentence for pairs in sets for sentence in pairs.sentences]
    directories = [*transfer, *(path for path in sts if path.is_dir())] if transfer else []
    tasks, missing = find_tasks(directories, task_names)
    if transfer and not tasks:
        raise InputError(
            "no transfer task here", transfer[0], remedy="docs/evaluation.md lists the names of their files."
        )
    opened = open_model(name, sentences)
    if tasks and not isinstance(opened.model, SentenceEmbedder | Adaptive):
        raise ConfigurationError([f"--transfer: {name} only compares pairs; give a model that embeds"])
    fine_tune = None if fine_tuner is None else fine_tuner(opened)
    others = {other: open_model(other, sentences) for other in dict.fromkeys([*beside, *against])}
    result = Evaluation(opened.name, opened.kind)
    result.words = {judgements.name: _words(opened, judgements) for judgements in lists}
    if sets:
        compared = compare(opened.model, sets)
        result.sts = score(compared)
        result.lengths = by_length(compared) if lengths else []
        result.beside = {other: evaluate_sts(model.model, sets) for other, model in others.items()}
        result.differences = {other: difference(result.sts, result.beside[other]) for other in against}
    if transfer:
        from paraforge.embeddings.evaluation.transfer.evaluate import evaluate_transfer

        result.transfer, result.missing = evaluate_transfer(opened.model, tasks, seed, folds), missing
    if fine_tune is not None:
        result.transfer += fine_tune(tasks)
    return result


def _words(opened: OpenedModel, judgements: SimilarityList) -> Correlation:
    if opened.words is not None:
        return evaluate_words(opened.words, judgements)
    if isinstance(opened.model, SentenceEmbedder):
        return evaluate_words(opened.model, judgements)
    raise ConfigurationError([f"--similarity: {opened.name} gives words no vectors"])
