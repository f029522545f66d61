"""The README.md of an exported model: what it is, what it was trained on, how it does, how to load it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paraforge.base.markdown import Code, code, escape, table
from paraforge.embeddings.encoders.parameters import CombinationParameters, EncoderParameters
from paraforge.versions import __version__


def describe_encoder(parameters: EncoderParameters) -> str:
    """One line: `concatenation(average of word 300, lstm of word 300 to 300 (pooling max))`."""
    if isinstance(parameters, CombinationParameters):
        return f"{parameters.kind}({', '.join(describe_encoder(part) for part in parameters.parts)})"
    output = getattr(parameters, "output_dimension", None)
    to = "" if output is None else f" to {output}"
    chosen = parameters.model_dump(include={"pooling", "directions"}, exclude_defaults=True)
    others = ", ".join(f"{name} {value}" for name, value in chosen.items())
    text = f"{parameters.kind} of {parameters.unit} {parameters.dimension}{to}"
    return f"{text} ({others})" if others else text


def model_card(
    name: str,
    parameters: EncoderParameters,
    dimension: int,
    vocabularies: Mapping[str, int],
    about: Mapping[str, Any],
    usage: str,
    library: str | None,
) -> str:
    """The card as Markdown with Hugging Face's header.

    about: what was kept with the model; all of it may be missing. usage: how to load this export, by
        `library`.
    """
    header = ["---", "language: en", "pipeline_tag: sentence-similarity"]
    header += [f"library_name: {library}"] if library else []
    header += ["tags: [sentence-similarity, paraphrase, feature-extraction]", "---"]
    lines = [
        *header,
        "",
        f"# {escape(name)}",
        "",
        "Paraphrastic sentence embeddings, trained with Paraforge.",
    ]
    lines += ["", "| | |", "| --- | --- |", f"| architecture | {describe_encoder(parameters)} |"]
    lines.append(f"| dimension | {dimension} |")
    lines += [f"| {unit} vocabulary | {size:,} |" for unit, size in vocabularies.items()]
    rows = [("parameters", "parameters"), ("pairs", "training pairs"), ("updates", "updates")]
    lines += [f"| {label} | {about[key]:,} |" for key, label in rows if about.get(key) is not None]
    if about.get("best_score") is not None:
        lines.append(f"| development score | {about['best_score']:.2f} |")
    lines.append(f"| Paraforge | {__version__} |")
    if about.get("signature"):
        lines += ["", f"Data signature: {code(about['signature'])}"]
    lines += ["", "## Loading", "", usage.strip(), ""]
    lines += _scores("Scores by year (Pearson and Spearman x 100)", about.get("years"))
    lines += _scores("Scores by set", about.get("sets"))
    lines += _leakage(about.get("leakage"))
    training = about.get("training")
    if training:
        settings = [(Code(key), str(value)) for key, value in training.items()]
        lines += ["## Training", "", table(["parameter", "value"], settings), ""]
    return "\n".join(lines)


def _scores(title: str, rows: Mapping[str, Mapping[str, Any]] | None) -> Sequence[str]:
    if not rows:
        return []
    cells = [(name, _number(row["pearson"]), _number(row["spearman"])) for name, row in rows.items()]
    shared = [
        f"{row['development_pairs']} of the {row['pairs']} pairs of {name} chose the epoch."
        for name, row in rows.items()
        if "development_pairs" in row
    ]
    scores = table(["set", "Pearson", "Spearman"], cells, right=[1, 2])
    return [f"## {title}", "", scores, "", *shared, *[""] * bool(shared)]


def _leakage(leakage: Mapping[str, Any] | None) -> Sequence[str]:
    if leakage is None:
        return ["The training pairs were not compared with any test set.", ""]
    if not leakage["leaked"]:
        return [f"None of {leakage['pairs']:,} pairs has a sentence of a test set.", ""]
    fate = "left out" if leakage["dropped"] else "kept"
    return [f"Of {leakage['pairs']:,} pairs {leakage['leaked']:,} have a sentence of a test set: {fate}.", ""]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
