"""Opens the models of published experiments and evaluates them, also on transfer tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.markdown import text_table
from paraforge.embeddings.evaluation.comparing import Model, OpenedModel
from paraforge.embeddings.evaluation.evaluate import Evaluation, OpenModel, evaluate, figure, rounded
from paraforge.papers.lexical import BASELINES
from paraforge.papers.transfer.evaluate import TransferScore, evaluate_transfer
from paraforge.papers.transfer.tasks import FOLDS, TASKS, find_tasks
from paraforge.papers.unrolling.parameters import is_decoder_model
from paraforge.products import loading

if TYPE_CHECKING:
    from paraforge.papers.transfer.fine_tuning import Variant


def open_model(name: str, sentences: Sequence[str] = (), device: str = "cpu") -> OpenedModel:
    """Open a lexical baseline, trained decoders (`DIRECTORY@unrolled:2`), or any other sentence model.

    sentences: the sentences to fit TF-IDF on.
    Raises the errors of `paraforge.products.loading.open_model`, which opens the other models.
    """
    if name in BASELINES:
        kind, fitted = BASELINES[name]
        return OpenedModel(name, kind, fitted(sentences))
    if is_decoder_model(name):
        from paraforge.papers.unrolling.model import DecoderModel

        model = DecoderModel.open(name, chosen_device(device))
        network = model.network.architecture
        kind = (
            f"trained decoders, {network.encoder}-{network.decoder}, read by {model.representation}, "
            f"{model.dimension} dimensions, {model.representation.similarity}"
        )
        return OpenedModel(name, kind, model)
    return loading.open_model(name, device=device)


@dataclass
class PaperEvaluation:
    """The results of `evaluate` and of transfer tasks.

    missing: names of the tasks whose files are missing.
    """

    similarity: Evaluation
    transfer: list[TransferScore] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return all figures x 100, rounded to four decimals; None for undefined ones."""
        content = self.similarity.as_json()
        if self.transfer or self.missing:
            # Settings such as a penalty of 0.00001 must not be rounded.
            tasks = [{**rounded(asdict(task)), "chosen": task.chosen} for task in self.transfer]
            content["transfer"] = {"tasks": tasks, "missing": self.missing}
        return content

    def lines(self) -> list[str]:
        """Return the results as tables."""
        lines = self.similarity.lines()
        if self.transfer:
            lines += ["", *self._transfer_table()]
        if self.missing:
            lines += ["", f"missing tasks: {', '.join(self.missing)}"]
        return lines

    def _transfer_table(self) -> list[str]:
        """Return one row per task, with a column for each training variant."""
        trainings = list(dict.fromkeys(score.training for score in self.transfer))
        tasks: dict[str, dict[str, TransferScore]] = {}
        for one in self.transfer:
            tasks.setdefault(one.name, {})[one.training] = one
        rows = []
        for name, scores in tasks.items():
            task = next(iter(scores.values()))
            figures = [
                figure(score.pearson if score.accuracy is None else score.accuracy)
                for score in (scores[training] for training in trainings)
            ]
            counts = [f"{count:,}" for count in (task.train, task.test, task.repeated)]
            measure = "Pearson" if task.accuracy is None else "accuracy"
            rows.append([name, *counts, *figures, measure, task.tested_on])
            if any(score.f1 is not None for score in scores.values()):
                figures = [figure(scores[training].f1) for training in trainings]
                rows.append(["", "", "", "", *figures, "F1", task.tested_on])
        columns = trainings if len(trainings) > 1 else ["score"]
        return text_table(["task", "train", "tested", "repeated", *columns, "measure", "tested on"], rows)


def evaluate_for_papers(
    name: str,
    open_model: OpenModel,
    *,
    sts: Sequence[Path] = (),
    transfer: Sequence[Path] = (),
    task_names: Sequence[str] = (),
    variants: Sequence[Variant] = (),
    folds: int = FOLDS,
    seed: int = 1,
    **options: Any,
) -> PaperEvaluation:
    """Evaluate a model on similarity (see `evaluate`) and on transfer tasks.

    transfer: directories of transfer tasks; SICK is also looked for in the directories of `sts`.
    task_names: names in `TASKS`; all if empty. folds: number of folds for tasks without a split.
    variants: ways to train copies of the model for the tasks, in addition to the fixed embeddings.
    seed: see `evaluate_transfer`. options: further arguments of `evaluate`.

    Raises the errors of `evaluate`; ConfigurationError if the arguments contradict each other.
    """
    problems = [f"--task {one}: use {', '.join(TASKS)}" for one in task_names if one not in TASKS]
    if not transfer and (task_names or variants):
        problems.append("--task and --fine-tune need --transfer")
    if variants and is_decoder_model(name):
        # Sentence vectors of decoders need the output vectors of the words that the decoders were trained on.
        problems.append(f"--fine-tune: {name} are decoders, which have no encoder to train for a task")
    problems += [f"--transfer {path}: no such directory" for path in transfer if not path.is_dir()]
    if problems:
        raise ConfigurationError(problems)
    if not transfer:
        return PaperEvaluation(evaluate(name, open_model, sts=sts, **options))
    tasks, missing = find_tasks([*transfer, *(path for path in sts if path.is_dir())], task_names)
    if not tasks:
        raise InputError(
            "no transfer task here",
            transfer[0],
            remedy="experiments/README.md lists the file names.",
        )
    opened = open_model(name, ())
    if not isinstance(opened.model, Model):
        raise ConfigurationError([f"--transfer: {name} only compares pairs; give a model that embeds"])
    encoder = None
    if variants:  # torch takes seconds
        from paraforge.papers.transfer.fine_tuning import encoder_of, fine_tune_transfer

        encoder = encoder_of(opened, tasks)
    similarity = Evaluation(opened.name, opened.kind)
    if sts or options.get("word_lists"):

        def open_others(wanted: str, sentences: Sequence[str]) -> OpenedModel:
            return opened if wanted == name else open_model(wanted, sentences)

        similarity = evaluate(name, open_others, sts=sts, **options)
    scores = evaluate_transfer(opened.model, tasks, seed, folds)
    if encoder is not None:
        scores += fine_tune_transfer(encoder, tasks, variants, seed, folds)
    return PaperEvaluation(similarity, scores, missing)
