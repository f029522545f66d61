"""Everything that one evaluation found, as tables for people and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from paraforge.base.text.tokens import TOKENIZER_NAME
from paraforge.embeddings.evaluation.similarity.sts import Difference, LengthScore, StsScores
from paraforge.embeddings.evaluation.similarity.word_lists import Correlation
from paraforge.embeddings.evaluation.transfer.scores import TransferScore
from paraforge.versions import __version__

_DIGITS: Final = 4


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
        for score in self.transfer:
            tasks.setdefault(score.name, {})[score.training] = score
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


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns: the first to the left, the others to the right."""
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header))]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]


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
