"""Imports CTranslate2 directories, and checks converted models of all formats against their subwords."""

import contextlib
import io
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paraforge.base.errors import InputError, ParaforgeError
from paraforge.translation.models.ctranslate2_library import load_ctranslate2
from paraforge.translation.models.model import SHORTLIST_FILE, end_token, source_end
from paraforge.translation.models.model_file import ModelFile, OtherFormat, read_vocabulary
from paraforge.translation.models.sentencepiece import check_pieces
from paraforge.translation.models.subwords import (
    copy_subwords,
    find_subwords,
    language_token,
    open_subwords,
    subwords_file,
)

Languages = tuple[str, str]
FOLDER = "ctranslate2"
# Numbers in a model's description that decide how much memory it needs.
_SIZE = re.compile(r".*(layers|dim|positions|position_embeddings|labels|hidden_size)|d_\w+")
# Variables with a number for each row of another.
_ROWS = {"bias": "weight", "weight_scale": "weight", "beta": "gamma"}

ORIGIN = FOLDER
WANTED = "model.bin (CTranslate2)"


def recognizes(path: Path) -> bool:
    """Return whether a path is a CTranslate2 directory."""
    return (path / "model.bin").is_file()


def convert_model(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    """Copy a CTranslate2 model with its subwords to ``output``.

    Returns entries of ``model.json``, with the language tags if the vocabulary names both languages, as in
    NLLB and M2M-100.

    Raises InputError if a part is missing, or vocabulary, embeddings and subwords do not belong together.
    """
    files = [path / "model.bin", *sorted(path.glob("*vocabulary.*")), path / "config.json"]
    if not any("vocabulary" in file.name for file in files):
        raise InputError("no vocabulary next to model.bin: not a complete CTranslate2 model", path)
    folder = output / FOLDER
    folder.mkdir()
    shortlist = path / SHORTLIST_FILE
    if shortlist.is_file() and shortlist.stat().st_size:  # an empty one ends CTranslate2's process
        files.append(shortlist)
    for file in files:
        if file.is_file():
            shutil.copyfile(file, folder / file.name)
    take_subwords(path, output, languages)
    check_whole(output, path, languages)
    vocabulary = vocabulary_of(folder, "target") or []
    if shortlist in files:
        _check_shortlist(shortlist, set(vocabulary))
    tags = language_affixes(languages, vocabulary)
    return {"engines": {FOLDER: FOLDER}, "source_suffix": list(source_end(folder)), **tags}


def _check_shortlist(path: Path, vocabulary: set[str]) -> None:
    """Raise InputError if most of a shortlist's target pieces are not the model's, or it has none."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        pieces = {piece for line in lines for piece in line.partition("\t")[2].split()}
    if len(pieces & vocabulary) <= len(pieces) / 2:
        raise InputError(
            f"not a shortlist for this model: {len(pieces & vocabulary)} of its {len(pieces)} target pieces "
            "are in the vocabulary",
            path,
            remedy="Delete it, or use the one that was made for the model.",
        )


def language_affixes(languages: Languages, vocabulary: list[str]) -> dict[str, list[str]]:
    """Return tags for the two languages, in the form of the model's language tokens.

    ``>>eng<<`` and ``<2en>`` name the target before the source sentence; the others name the source there and
    begin the translation with the target's. Empty for a model of one language pair.

    Raises InputError if several tokens of the model fit a language.
    """
    words = set(vocabulary)
    target = language_token(languages[1], words)
    if target is not None and target.startswith((">>", "<2")):
        return {"source_prefix": [target]}
    source = language_token(languages[0], words) if target is not None else None
    if source is None or target is None:
        return {}
    return {"source_prefix": [source], "target_prefix": [target]}


def take_subwords(path: Path, output: Path, languages: Languages) -> None:
    """Copy the subwords of both sides to an imported model. Raises InputError if they are missing or
    damaged."""
    for side, file, language in zip(
        ("source", "target"), find_subwords(path, languages), languages, strict=True
    ):
        open_subwords(copy_subwords(file, output, side), language)


def convert(converter: Any, path: Path, folder: Path) -> None:
    """Run one of CTranslate2's converters on the model at ``path``; ``folder`` is replaced. Raises
    InputError if the model is damaged or unsupported by CTranslate2."""
    try:
        # Model builders print, but standard output may be a pipe of sentences.
        with contextlib.redirect_stdout(io.StringIO()):
            converter.convert(str(folder), force=True)
    except (ParaforgeError, OSError, MemoryError):
        raise
    except Exception as error:  # a stranger's model can cause anything
        raise InputError(f"CTranslate2 cannot convert this model: {last_line(error)}", path) from error


def check_sizes(values: Mapping[str, Any], tensors: int, size: int, path: Path) -> None:
    """Check that a description requests no larger model than its weights, before the model is built.

    values: the description. tensors: number of stored weights. size: their bytes.

    Raises InputError if it has more layers than weights, or a matrix that is larger than all weights.
    """
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    width = max(1, numbers.get("d_model", 1), numbers.get("encoder_embed_dim", 1))
    for name, value in numbers.items():
        if _SIZE.fullmatch(name) and value > (tensors if name.endswith("layers") else size // width):
            raise InputError(
                f"{name} is {value:,}, too large for its {tensors:,} weights of {size:,} bytes",
                path,
                remedy="It is damaged, or not the description of these weights.",
            )


def check_whole(output: Path, path: Path, languages: Languages) -> None:
    """Load a converted model, and check that its vocabulary and the subwords belong together. Raises
    InputError if it cannot be loaded, or they do not."""
    folder = output / FOLDER
    _check_weights(folder, path)
    try:
        load_ctranslate2().Translator(str(folder), device="cpu")
    except (RuntimeError, ValueError, IndexError) as error:
        raise InputError(f"CTranslate2 cannot load this model: {last_line(error)}", path) from error
    for side, language in zip(("source", "target"), languages, strict=True):
        if (types := vocabulary_of(folder, side)) is None:
            continue
        check_pieces(open_subwords(subwords_file(output, side), language), types, path)
        if side == "target" and end_token(folder) not in types:
            raise InputError(f"its end of sentence, {end_token(folder)!r}, is not in its vocabulary", path)


def _check_weights(folder: Path, path: Path) -> None:
    """Raise InputError for weights that are damaged, not finite, or of another vocabulary. CTranslate2 would
    use them, and read beyond the end of embeddings and biases."""
    try:
        file = ModelFile(folder)
    except OtherFormat:
        return
    if not (folder / "config.json").is_file():
        raise InputError("no config.json next to model.bin: not a complete CTranslate2 model", path)
    for side, name in (("source", "encoder/embeddings_0"), ("target", "decoder/embeddings")):
        types, rows = vocabulary_of(folder, side), file.shape(f"{name}/weight")[0]
        if types is not None and rows != len(types):
            raise InputError(
                f"the {side}'s embedding has {rows} rows, but its vocabulary {len(types)} types",
                path,
                remedy="Use the vocabulary that the model was converted with.",
            )
    for name in file.variables:
        stem, _, part = name.rpartition("/")
        other = f"{stem}/{_ROWS.get(part)}"
        if other in file and file.shape(name) not in ((), file.shape(other)[:1]):
            shapes = f"{name} has the shape {file.shape(name)}, {other} {file.shape(other)}"
            raise InputError(f"its weights are damaged: {shapes}", path)
        if not np.isfinite(file.array(name)).all():
            raise InputError(f"its weights are damaged: {name} has values that are not numbers", path)


def vocabulary_of(folder: Path, side: str) -> list[str] | None:
    """Return the vocabulary of one side of a CTranslate2 model; None if it has no file for it."""
    return read_vocabulary(folder, side) if any(folder.glob("*vocabulary.*")) else None


def last_line(error: BaseException) -> str:
    """Return the last line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else repr(error)
