"""Opens translation models in the layout of ``models/nmt``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, check_format, describing
from paraforge.base.files import plain_name, read_json, sha256_file

MODEL_FILE = "model.json"
MODEL_FORMAT = 1
# CTranslate2's vocabulary shortlist, beside its weights.
SHORTLIST_FILE = "vmap.txt"
NO_MODEL = "none"


@dataclass(frozen=True)
class TranslationModel:
    """The parts of a model, and the form of its input.

    path: directory of the model.
    folders: its directory in each form, which has the name of an engine: ``ctranslate2``, ``fairseq``.
    source_sentencepiece: SentencePiece model of the source language, or its substitute (see
        :mod:`paraforge.translation.models.subwords`).
    target_sentencepiece: the same for the target language.
    source_language: e.g. ``cs``. target_language: e.g. ``en``.
    source_prefix: tokens before every source sentence (language tags). source_suffix: tokens after it.
    target_prefix: tokens at the start of every hypothesis, not part of the text.
    maximum_source_tokens: positions of the encoder, including end-of-sentence.
    fingerprint: SHA-256 of weights and vocabulary.
    """

    path: Path
    folders: dict[str, Path]
    source_sentencepiece: Path
    target_sentencepiece: Path
    source_language: str
    target_language: str
    fingerprint: str
    source_prefix: tuple[str, ...] = ()
    source_suffix: tuple[str, ...] = ()
    target_prefix: tuple[str, ...] = ()
    maximum_source_tokens: int = 1024


def open_model(path: Path, *, verify: bool = True) -> TranslationModel:
    """Open a directory that the stage ``nmt`` or
    :func:`~paraforge.translation.models.importing.import_model` wrote.

    verify: whether to compare the files with the SHA-256 in ``model.json``.

    Raises InputError if the directory or a part of the model is missing, damaged or changed.
    """
    if not path.is_dir():
        raise InputError("no such model directory", path)
    if not (path / MODEL_FILE).is_file():
        raise InputError(
            f"there is no {MODEL_FILE} in it", path, remedy="Convert the model with 'paraforge model import'."
        )
    index = read_json(path / MODEL_FILE)
    with describing(path / MODEL_FILE, "damaged index"):
        check_format(index["schema_version"], MODEL_FORMAT, path / MODEL_FILE)
        if index["origin"] == NO_MODEL:
            raise InputError(
                "nmt.model is none, but there are sentences to translate",
                path / MODEL_FILE,
                remedy="Train one or name one under 'nmt' in params.yaml.",
            )
        model = TranslationModel(
            path=path,
            folders={str(engine): path / plain_name(folder) for engine, folder in index["engines"].items()},
            source_sentencepiece=path / plain_name(index["sentencepiece"]["source"]),
            target_sentencepiece=path / plain_name(index["sentencepiece"]["target"]),
            source_language=str(index["source_language"]),
            target_language=str(index["target_language"]),
            fingerprint=str(index["fingerprint"]),
            source_prefix=tuple(index.get("source_prefix", ())),
            source_suffix=tuple(index.get("source_suffix", ())),
            target_prefix=tuple(index.get("target_prefix", ())),
            maximum_source_tokens=int(index.get("maximum_source_tokens") or 1024),
        )
        files = dict(index["files"])
        for name in files:
            for part in str(name).split("/"):
                plain_name(part)
        check_files(path, files, verify)
    return model


def check_files(path: Path, files: Mapping[str, Any], verify: bool = True) -> None:
    """Compare a model's files with ``model.json``: their sizes and, with ``verify``, their SHA-256. Raises
    InputError if one is missing or changed."""
    for name, expected in files.items():
        file = path / name
        if not file.is_file():
            raise InputError("no such file: the model is not complete", file)
        # A model changed after its fingerprint was taken would have the old one in every key.
        changed = file.stat().st_size != expected["bytes"] or (
            verify and sha256_file(file) != expected["sha256"]
        )
        if changed:
            raise InputError(
                f"it differs from {MODEL_FILE}: it is damaged or was changed",
                file,
                remedy="Make the model again ('dvc repro'), or download it again.",
            )


def source_end(ctranslate2: Path) -> tuple[str, ...]:
    """Return the end-of-sentence token if a CTranslate2 model expects it in its input, else nothing.

    Models converted from Transformers expect it (``add_source_eos: false``); older conversions do not."""
    if not (ctranslate2 / "config.json").is_file():
        return ()
    if read_json(ctranslate2 / "config.json").get("add_source_eos", True):
        return ()
    return (end_token(ctranslate2),)


def end_token(ctranslate2: Path) -> str:
    """Return a CTranslate2 model's end-of-sentence token."""
    configuration = ctranslate2 / "config.json"
    values = read_json(configuration) if configuration.is_file() else {}
    return str(values.get("eos_token") or "</s>")
