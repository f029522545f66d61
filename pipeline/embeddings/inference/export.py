"""Exports a trained model to sentence-transformers, with a README.md, or to word2vec."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.base.markdown import Code, code, escape, table
from paraforge.base.shards.work import copy_files, replaced_directory
from paraforge.base.text.vocabulary import WORD, WORD_UNITS
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.encoders.encoder import Combination, Encoder
from paraforge.embeddings.encoders.parameters import (
    AverageParameters,
    CombinationParameters,
    EncoderParameters,
)
from paraforge.embeddings.evaluation.leakage import OF_WHAT
from paraforge.embeddings.learning.checkpoint import write_tensors
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.versions import __version__

logger = logging.getLogger(__name__)


def describe_encoder(parameters: EncoderParameters) -> str:
    """Describe an encoder: `concatenation(average of word 300, lstm of word 300 to 300 (pooling max))`."""
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
) -> str:
    """Return the card as Markdown with Hugging Face's header.

    about: information stored with the model; any of it can be missing.
    usage: how to load this export.
    """
    lines = [
        "---",
        "language: en",
        "pipeline_tag: sentence-similarity",
        "library_name: sentence-transformers",
        "tags: [sentence-similarity, paraphrase, feature-extraction]",
        "---",
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
        return ["No test set or held-out split was given to compare the training pairs with.", ""]
    if not leakage["leaked"]:
        return [f"None of {leakage['pairs']:,} pairs has a sentence {OF_WHAT}.", ""]
    fate = "left out" if leakage["dropped"] else "kept"
    return [f"Of {leakage['pairs']:,} pairs {leakage['leaked']:,} have a sentence {OF_WHAT}: {fate}.", ""]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


Format = Literal["sentence-transformers", "word2vec"]

_STATIC = "sentence_transformers.models.StaticEmbedding"
_OWN = "paraforge.embeddings.sentence_transformers_module.ParaforgeEncoder"


def export_model(directory: Path, output: Path, format: Format) -> None:
    """Export a trained model. Raises InputError if there is none or the format does not support it.

    sentence-transformers: a directory for `SentenceTransformer(output)`. Averages of words with a shared
    unknown vector only use the library's own modules; other models need this package and
    `trust_remote_code=True`.
    word2vec: a text file of the words' vectors, of such an average or of an encoder with one table of words.
    """
    model = SentenceModel.open(directory)
    if format == "word2vec":
        word_vectors(model).write_text(output, header=True)
        return
    with replaced_directory(output) as target:
        if averaged_words(model.parameters) is not None:
            if model.unknown_words == "own":
                logger.warning("%s: there, %s", output, _SHARED)
            _write_static(model, target)
            usage = _code()
            if model.unknown_words == "own":
                usage += f"\n\nHere {_SHARED}; scores are of a model where each has its own."
        else:
            _write_own(directory, target)
            usage = "Needs Paraforge in addition to sentence-transformers:\n\n"
            usage += _code(", trust_remote_code=True")
        sizes = {unit: len(vocabulary) for unit, vocabulary in model.vocabularies.items()}
        card = model_card(output.name, model.parameters, model.dimension, sizes, model.about, usage)
        (target / "README.md").write_text(card, encoding="utf-8")


_SHARED = "words that the model does not know share one vector"


def _code(options: str = "") -> str:
    return (
        "```python\nfrom sentence_transformers import SentenceTransformer\n\n"
        f'model = SentenceTransformer("PATH"{options})\nvectors = model.encode(["A dog runs."])\n```'
    )


def averaged_words(parameters: EncoderParameters) -> str | None:
    """Return the kind of words whose vectors are averaged, in one table or in several that are concatenated
    or added; None if a sentence's vector is not exactly the mean of its words' vectors."""
    if isinstance(parameters, CombinationParameters):
        units = {averaged_words(part) for part in parameters.parts}
        return units.pop() if len(units) == 1 else None
    averages = isinstance(parameters, AverageParameters) and parameters.unit in WORD_UNITS
    return parameters.unit if averages else None


def _word_table(encoder: Encoder) -> Tensor:
    if not isinstance(encoder, Combination):
        assert isinstance(encoder, Average)
        return encoder.table.detach().cpu()
    tables = [_word_table(part) for part in encoder.encoders().values()]
    return torch.stack(tables).sum(0) if encoder.kind == "addition" else torch.cat(tables, dim=1)


def word_vectors(model: SentenceModel) -> WordVectors:
    """Return the words and their vectors. Raises InputError if the model has no table of words, or several
    and is not a mean of word vectors."""
    encoder = model.encoder
    unit = averaged_words(model.parameters)
    if unit is not None:
        return WordVectors(model.vocabularies[unit].units, _word_table(encoder).numpy())
    tables = [name for name, unit in encoder.table_units().items() if unit in WORD_UNITS]
    if len(tables) != 1:
        raise InputError(
            f"word2vec holds one vector per word, but this model has {len(tables)} tables of words",
            remedy="Export it for sentence-transformers.",
        )
    table = encoder.tables()[tables[0]].detach().cpu().numpy()
    return WordVectors(model.vocabularies[encoder.table_units()[tables[0]]].units, table)


def _write_static(model: SentenceModel, target: Path) -> None:
    """Write the library's module for the mean of token vectors, with a tokenizer for our tokens."""
    (unit,) = model.vocabularies
    # sacremoses takes half a second to import, and opening a model imports this module.
    from paraforge.embeddings.inference.moses_normalizer import word_tokenizer

    vocabulary = model.vocabularies[unit]
    place = target / "0_StaticEmbedding"
    place.mkdir()
    tokenizer = word_tokenizer(vocabulary.units, vocabulary.unknown, punctuation=unit == WORD)
    tokenizer.save(str(place / "tokenizer.json"))
    write_tensors(place / "model.safetensors", {"embedding.weight": _word_table(model.encoder)})
    _write_modules(target, place.name, _STATIC)


def _write_own(directory: Path, target: Path) -> None:
    place = target / "0_ParaforgeEncoder"
    place.mkdir()
    copy_files(directory, place)
    _write_modules(target, place.name, _OWN)


def _write_modules(target: Path, path: str, kind: str) -> None:
    modules: list[dict[str, Any]] = [{"idx": 0, "name": "0", "path": path, "type": kind}]
    write_json(target / "modules.json", modules)
    write_json(
        target / "config_sentence_transformers.json",
        {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )
