"""Evaluates a model, with results as tables and as JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from paraforge.base.errors import ConfigurationError
from paraforge.base.markdown import text_table
from paraforge.base.text.tokens import TOKENIZER_NAME
from paraforge.embeddings.evaluation.comparing import Model, OpenedModel
from paraforge.embeddings.evaluation.sets import read_sets
from paraforge.embeddings.evaluation.sts import (
    Difference,
    LengthScore,
    StsScores,
    by_length,
    compare,
    difference,
    evaluate_sts,
    score,
)
from paraforge.embeddings.evaluation.word_lists import (
    Correlation,
    SimilarityList,
    evaluate_words,
    read_similarity_lists,
)
from paraforge.versions import __version__

_DIGITS: Final = 4
OpenModel = Callable[[str, Sequence[str]], OpenedModel]


@dataclass
class Evaluation:
    """The results of a model; parts that were not requested are empty or None.

    model, kind: its name as given, and its description. sts: Pearson and Spearman on sets of sentence pairs.
    beside: the same for other models, by name. differences: how much each of those differs.
    lengths: results by the length of the longer sentence. words: results by word list.
    """

    model: str
    kind: str
    sts: StsScores | None = None
    beside: dict[str, StsScores] = field(default_factory=dict)
    lengths: list[LengthScore] = field(default_factory=list)
    differences: dict[str, Difference] = field(default_factory=dict)
    words: dict[str, Correlation] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return all figures x 100, with four decimals; null if undefined."""
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
            content["by_length"] = [round_floats(asdict(score)) for score in self.lengths]
        if self.differences:
            content["differences"] = {name: round_floats(asdict(d)) for name, d in self.differences.items()}
        if self.words:
            content["words"] = {name: asdict(result) for name, result in self.words.items()}
        return content

    def lines(self) -> list[str]:
        """Return the results as tables."""
        lines = [f"{self.model}: {self.kind}"]
        if self.sts is not None:
            years = {year.name: year for year in self.sts.groups}
            others = {
                name: {group.name: group.pearson for group in scores.groups}
                for name, scores in self.beside.items()
            }
            lines += _table(
                "set", ["pairs", "unscored", *_BOTH], {result.name: result for result in self.sts.sets}
            )
            lines += _table("mean of", ["sets", *_BOTH], years, others)
        lines += _table("tokens", ["pairs", *_BOTH], {result.length: result for result in self.lengths})
        for name, compared in self.differences.items():
            lines += ["", f"mean absolute difference in Pearson to {name}, {compared.sets} sets: "]
            lines[-1] += (
                "-" if compared.mean_absolute_pearson is None else f"{compared.mean_absolute_pearson:.2f}"
            )
        return lines + _table("words", ["pairs", "found", "Spearman"], self.words)


_BOTH = ("Pearson", "Spearman")


def _table(
    title: str,
    columns: Sequence[str],
    scores: Mapping[str, Any],
    others: Mapping[str, Mapping[str, float | None]] | None = None,
) -> list[str]:
    """Return a blank line and a table with a row per score: its name, its fields, and those of others;
    nothing without scores."""
    others = others or {}
    rows = [
        [
            name,
            *(_shown(getattr(score, column.lower())) for column in columns),
            *(figure(other.get(name)) for other in others.values()),
        ]
        for name, score in scores.items()
    ]
    return ["", *text_table([title, *columns, *others], rows)] if rows else []


def _shown(value: float | None) -> str:
    return f"{value:,}" if isinstance(value, int) else figure(value)


def figure(value: float | None) -> str:
    """Format a figure with one decimal, `-` if undefined."""
    return "-" if value is None else f"{value:.1f}"


def _sts_json(scores: StsScores) -> dict[str, Any]:
    return {
        "sets": [round_floats(asdict(score)) for score in scores.sets],
        "years": [round_floats(asdict(group)) for group in scores.groups],
    }


def round_floats(value: Any) -> Any:
    """Round all floats in a JSON value to four digits."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {key: round_floats(item) for key, item in value.items()}
    return [round_floats(item) for item in value] if isinstance(value, list) else value


def evaluate(
    name: str,
    open_model: OpenModel,
    *,
    sts: Sequence[Path] = (),
    word_lists: Sequence[Path] = (),
    lengths: bool = False,
    beside: Sequence[str] = (),
) -> Evaluation:
    """Evaluate a model, and others for comparison. Reads all files and opens all models before computing
    anything.

    name, open_model: the model's name, and the function that opens it, given the name and all sentences of
        `sts`, e.g. :func:`paraforge.products.loading.open_model`.
    sts: files and directories of scored sentence pairs. lengths: whether to also report by length.
    word_lists: word similarity lists, for models with word vectors.
    beside: other models to report STS scores of, and differences from.

    Raises:
        ConfigurationError: nothing is requested, or something that needs `sts` without it.
        InputError: a file or model that cannot be read, with file and line.
    """
    problems = []
    if not (sts or word_lists):
        problems.append("nothing to evaluate on: pass --sts or --similarity")
    if not sts and lengths:
        problems.append("--by-length needs --sts")
    if not sts and beside:
        problems.append("--baseline needs --sts")
    if problems:
        raise ConfigurationError(problems)
    sets = read_sets(sts) if sts else []
    lists = read_similarity_lists(word_lists)
    sentences = [sentence for pairs in sets for sentence in pairs.sentences]
    opened = open_model(name, sentences)
    others = {other: open_model(other, sentences) for other in beside}
    result = Evaluation(opened.name, opened.kind)
    result.words = {judgments.name: _words(opened, judgments) for judgments in lists}
    if sets:
        compared = compare(opened.model, sets)
        result.sts = score(compared)
        result.lengths = by_length(compared) if lengths else []
        result.beside = {other: evaluate_sts(model.model, sets) for other, model in others.items()}
        result.differences = {other: difference(result.sts, result.beside[other]) for other in others}
    return result


def _words(opened: OpenedModel, judgments: SimilarityList) -> Correlation:
    if opened.words is not None:
        return evaluate_words(opened.words, judgments)
    if isinstance(opened.model, Model):
        return evaluate_words(opened.model, judgments)
    raise ConfigurationError([f"--similarity: {opened.name} gives words no vectors"])
