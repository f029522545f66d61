"""Marian's own format, as OPUS-MT distributes it: model.npz, vocabularies, decoder.yml."""

import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from paraforge.base.errors import InputError
from paraforge.base.text.units import load_processor
from paraforge.base.yaml_text import read_yaml_text
from paraforge.translation.models.archives import check_zip
from paraforge.translation.models.importers.ctranslate2 import (
    FOLDER,
    Languages,
    check_whole,
    convert,
    language_affixes,
    last_line,
    take_subwords,
    vocabulary_of,
)
from paraforge.translation.models.sentencepiece import pieces_of
from paraforge.translation.models.subwords import copy_subwords

_NORM = r"ln_(scale|bias)(_pre)?"
# What is copied from model.npz; a weight of another name has a part in the model that would be lost.
_WEIGHTS = re.compile(
    r"special:model\.yml|Wemb|Wpos"
    rf"|(encoder|decoder)_(Wemb|(emb|top)_{_NORM})"
    rf"|(encoder|decoder)_l\d+_(self|context)_([Wb][qkvo]|Wo_{_NORM})"
    rf"|(encoder|decoder)_l\d+_ffn_([Wb][12]|ffn_{_NORM})"
    r"|decoder_ff_logit_out_(W|Wt|b)"
)


def decoder_file(folder: Path) -> Path | None:
    """The decoder configuration of a Marian directory: ``decoder.yml``, or the only ``*.decoder.yml``."""
    if (folder / "decoder.yml").is_file():
        return folder / "decoder.yml"
    found = sorted(folder.glob("*.decoder.yml"))
    return found[0] if len(found) == 1 else None


ORIGIN = "opus-mt"
WANTED = "decoder.yml (OPUS-MT, Marian)"


def recognises(path: Path) -> bool:
    """Whether a path is a directory of Marian."""
    return path.is_dir() and decoder_file(path) is not None


def convert_model(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    """Convert a Marian directory.

    Returns entries of ``model.json``; for a model of several target languages the tag ``>>eng<<`` among them.

    Raises InputError: a part is missing or damaged, or vocabulary and weights do not belong together.
    """
    from ctranslate2.converters import MarianConverter

    weights, vocabularies = _parts(path)
    check_zip(weights)
    _check_rows(weights, vocabularies)
    with tempfile.TemporaryDirectory(dir=output) as scratch:
        listed = [_as_yaml(file, Path(scratch) / f"{n}.yml") for n, file in enumerate(vocabularies)]
        _take_subwords(path, vocabularies, output, languages)
        convert(MarianConverter(str(weights), [str(file) for file in listed]), path, output / FOLDER)
    check_whole(output, path, languages)
    tags = language_affixes(languages, vocabulary_of(output / FOLDER, "source") or [])
    # Only >>eng<< and its like are Marian's: anything else would be a piece of text.
    prefix = [tag for tag in tags.get("source_prefix", []) if tag.startswith(">>")]
    return {"engines": {FOLDER: FOLDER}, "source_prefix": prefix}


def _parts(folder: Path) -> tuple[Path, list[Path]]:
    configuration = decoder_file(folder)
    assert configuration is not None
    try:
        content = read_yaml_text(configuration.read_text(encoding="utf-8"))
        weights, vocabularies = content["models"], content["vocabs"]
        names = [str(weights[0]), *map(str, vocabularies)]
        if len(weights) != 1:
            raise InputError(
                f"an ensemble of {len(weights)} models", configuration, remedy="Leave one of them in it."
            )
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, IndexError) as error:
        raise InputError(
            "not a decoder's configuration: it names no models and vocabs", configuration
        ) from error
    files = []
    for name in names:
        # Marian itself writes paths of the machine that trained, by default.
        beside = folder / Path(name).name
        moved = Path(name).is_absolute() or not (folder / name).is_file()
        file = (
            beside if moved and beside.is_file() and ".." not in Path(name).parts else folder / name
        ).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise InputError(f"{name!r} lies outside of the model's directory", configuration)
        if not file.is_file():
            raise InputError(f"CTranslate2 cannot convert this model: there is no {name}", configuration)
        files.append(file)
    return files[0], files[1:]


def _check_rows(weights: Path, vocabularies: list[Path]) -> None:
    """Compare the embeddings' rows with the vocabularies, before anything is converted."""
    from ctranslate2.converters.marian import load_vocab

    try:
        with np.load(weights, allow_pickle=False) as arrays:
            if "special:model.yml" not in arrays:
                raise InputError("no special:model.yml in it: not a model of Marian", weights)
            rows = {
                name: arrays[name].shape[0]
                for name in ("Wemb", "encoder_Wemb", "decoder_Wemb")
                if name in arrays
            }
            strange = [name for name in arrays.files if not _WEIGHTS.fullmatch(name)]
    except (ValueError, OSError, KeyError, EOFError) as error:
        raise InputError(f"not a model of Marian, or damaged: {last_line(error)}", weights) from error
    if strange:
        raise InputError(
            f"it has {strange[0]}, which CTranslate2's converter passes over",
            weights,
            remedy="Only plain transformers can be imported.",
        )
    for side, file in (("encoder", vocabularies[0]), ("decoder", vocabularies[-1])):
        try:
            types = len(pieces_of(load_processor(file)) if file.suffix == ".spm" else load_vocab(str(file)))
        except (ValueError, UnicodeDecodeError) as error:
            raise InputError(f"not a vocabulary of Marian: {last_line(error)}", file) from error
        found = rows.get(f"{side}_Wemb", rows.get("Wemb"))
        if found is not None and found != types:
            raise InputError(
                f"the {side}'s embedding has {found} rows, but the vocabulary {file.name} has {types} types",
                weights,
                remedy="Give the vocabularies that the model was trained with.",
            )


def _as_yaml(vocabulary: Path, target: Path) -> Path:
    """A vocabulary as the converter reads it; Marian may also have been given a SentencePiece model."""
    if vocabulary.suffix != ".spm":
        return vocabulary
    text = io.StringIO()
    for number, piece in enumerate(pieces_of(load_processor(vocabulary))):
        text.write(f"{json.dumps(piece, ensure_ascii=False)}: {number}\n")
    target.write_text(text.getvalue(), encoding="utf-8")
    return target


def _take_subwords(path: Path, vocabularies: list[Path], output: Path, languages: Languages) -> None:
    if all(file.suffix == ".spm" for file in vocabularies):
        for side, file in (("source", vocabularies[0]), ("target", vocabularies[-1])):
            copy_subwords(file, output, side)
    else:
        take_subwords(path, output, languages)
