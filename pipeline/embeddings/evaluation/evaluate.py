"""Evaluates a model on everything that is asked for; all that was found, as tables for people and as JSON."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.markdown import text_table
from paraforge.base.text.tokens import TOKENIZER_NAME
from paraforge.embeddings.evaluation.sets.finding import read_sets
from paraforge.embeddings.evaluation.similarity.comparing import Adaptive, OpenedModel, SentenceEmbedder
from paraforge.embeddings.evaluation.similarity.sts import (
    Difference,
    LengthScore,
    StsScores,
    by_length,
    compare,
    difference,
    evaluate_sts,
    score,
)
from paraforge.embeddings.evaluation.similarity.word_lists import (
    Correlation,
    SimilarityList,
    evaluate_words,
    read_similarity_lists,
)
from paraforge.embeddings.evaluation.transfer.scores import TransferScore
from paraforge.embeddings.evaluation.transfer.tasks import FOLDS, Task, find_tasks, transfer_tasks
from paraforge.versions import __version__

_DIGITS: Final = 4
OpenModel = Callable[[str, Sequence[str]], OpenedModel]
FineTuner = Callable[[OpenedModel], Callable[[Sequence[Task]], list[TransferScore]]]


@dataclass
class Evaluation:
    """Results of a model; what was not asked for is empty or None.

    model, kind: its name as given, and what it is. sts: Pearson and Spearman on sets of sentence pairs.
    beside: the same of other models, by name. differences: how far each of those differs.
    lengths: by the length of the longer sentence. words: by the name of the list.
    transfer: transfer tasks. missing: names of those whose files are not there.
    """

    model: str
    kind: str
    sts: StsScores | None = None
    beside: dict[str, StsScores] = field(default_factory=dict)
    lengths: list[LengthScore] = field(default_factory=list)
    differences: dict[str, Difference] = field(default_factory=dict)
    words: dict[str, Correlation] = field(default_factory=dict)
    transfer: list[TransferScore] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """All figures x 100, four digits behind the point; null where one is not defined."""
        content: dict[str, Any] = {
            "paraforge": __version__,
            "tokenizer": TOKENIZER_NAME,
            "model": self.model,
            "kind": self.kind,
        }
        if self.sts is not None:
            content |= _sts_json(self.sts)
        if self.beside:
            content["beside"] = {name: _sts_json(scores) for name, scores in self.beside.items()}
        if self.lengths:
            content["by_length"] = [_rounded(asdict(score)) for score in self.lengths]
        if self.differences:
            content["differences"] = {name: _rounded(asdict(d)) for name, d in self.differences.items()}
        if self.words:
            content["words"] = {name: asdict(found) for name, found in self.words.items()}
        if self.transfer or self.missing:
            # Settings such as a penalty of 0.00001 are no figures to round.
            tasks = [{**_rounded(asdict(task)), "chosen": task.chosen} for task in self.transfer]
            content["transfer"] = {"tasks": tasks, "missing": self.missing}
        return content

    def lines(self) -> list[str]:
        """Tables."""
        lines = [f"{self.model}: {self.kind}"]
        if self.sts is not None:
            lines += ["", *self._set_table(), "", *self._year_table()]
        if self.lengths:
            rows = [
                [score.length, f"{score.pairs:,}", _figure(score.pearson), _figure(score.spearman)]
                for score in self.lengths
            ]
            lines += ["", *text_table(["tokens", "pairs", "Pearson", "Spearman"], rows)]
        for name, found in self.differences.items():
            lines += ["", f"mean absolute difference in Pearson to {name}, {found.sets} sets: "]
            lines[-1] += "-" if found.mean_absolute_pearson is None else f"{found.mean_absolute_pearson:.2f}"
        if self.words:
            rows = [
                [name, f"{found.pairs:,}", f"{found.found:,}", _figure(found.spearman)]
                for name, found in self.words.items()
            ]
            lines += ["", *text_table(["words", "pairs", "found", "Spearman"], rows)]
        if self.transfer:
            lines += ["", *self._transfer_table()]
        if self.missing:
            lines += ["", f"missing tasks: {', '.join(self.missing)}"]
        return lines

    def _set_table(self) -> list[str]:
        assert self.sts is not None
        rows = [
            [
                score.name,
                f"{score.pairs:,}",
                f"{score.unscored:,}",
                _figure(score.pearson),
                _figure(score.spearman),
            ]
            for score in self.sts.sets
        ]
        return text_table(["set", "pairs", "unscored", "Pearson", "Spearman"], rows)

    def _year_table(self) -> list[str]:
        """One row a year: the model's means, and behind them Pearson of the others."""
        assert self.sts is not None
        others = [{group.name: group.pearson for group in scores.groups} for scores in self.beside.values()]
        rows = [
            [
                group.name,
                str(group.sets),
                _figure(group.pearson),
                _figure(group.spearman),
                *(_figure(other.get(group.name)) for other in others),
            ]
            for group in self.sts.groups
        ]
        return text_table(["mean of", "sets", "Pearson", "Spearman", *self.beside], rows)

    def _transfer_table(self) -> list[str]:
        """A row a task, a column for each way in which it was done."""
        trainings = list(dict.fromkeys(score.training for score in self.transfer))
        tasks: dict[str, dict[str, TransferScore]] = {}
        for one in self.transfer:
            tasks.setdefault(one.name, {})[one.training] = one
        rows = []
        for name, scores in tasks.items():
            task = next(iter(scores.values()))
            figures = [
                _figure(score.pearson if score.accuracy is None else score.accuracy)
                for score in (scores[training] for training in trainings)
            ]
            counts = [f"{count:,}" for count in (task.train, task.test, task.repeated)]
            measure = "Pearson" if task.accuracy is None else "accuracy"
            rows.append([name, *counts, *figures, measure, task.tested_on])
            if any(score.f1 is not None for score in scores.values()):
                figures = [_figure(scores[training].f1) for training in trainings]
                rows.append(["", "", "", "", *figures, "F1", task.tested_on])
        columns = trainings if len(trainings) > 1 else ["score"]
        return text_table(["task", "train", "tested", "repeated", *columns, "measure", "tested on"], rows)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _sts_json(scores: StsScores) -> dict[str, Any]:
    return {
        "sets": [_rounded(asdict(score)) for score in scores.sets],
        "years": [_rounded(asdict(group)) for group in scores.groups],
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


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
