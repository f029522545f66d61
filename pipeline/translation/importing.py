"""Ready models to the layout of ``models/nmt``: fairseq, CTranslate2, OPUS-MT/Marian and Transformers."""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.errors import InputError, require
from pipeline.files import read_json
from pipeline.shards.work import replaced_directory
from pipeline.translation.conversion import (
    MODEL_FILE,
    check_files,
    normalise_checkpoint,
    write_description,
    write_fairseq_model,
)
from pipeline.translation.vocabulary import check_pieces, find_sentencepiece, load_processor, read_dictionary

logger = logging.getLogger(__name__)

Languages = tuple[str, str]
_CHECKPOINTS = ("checkpoint.pt", "checkpoint_best.pt", "model.pt", "checkpoint_last.pt")
_TRANSFORMERS_WEIGHTS = ("model.safetensors", "pytorch_model.bin", "model.safetensors.index.json")
# How multilingual models name the languages that this project uses unless told otherwise.
_LANGUAGE_TOKENS = {"cs": ("cs_CZ", "ces_Latn"), "en": ("en_XX", "eng_Latn")}


def import_model(
    path: Path, output: Path, *, source_language: str = "cs", target_language: str = "en"
) -> dict[str, Any]:
    """Give a ready model the layout of ``models/nmt``; ``output`` is replaced as a whole, or not at all.

    Args:
        path: a fairseq checkpoint or its directory (with both dictionaries and the SentencePiece model), or
            a directory of CTranslate2, of OPUS-MT/Marian, of Transformers, or of this layout.
        output: directory to write.
        source_language, target_language: codes; for fairseq as in the dictionaries' names, for multilingual
            models also as their language tokens.

    Returns:
        ``model.json``.

    Raises:
        InputError: no such model, a part of it is missing, or its parts do not belong together.
        MissingPackageError: a Transformers model, and that package is not installed.
    """
    if not path.exists():
        raise InputError("no such model", path, remedy="Give nmt.model the path of a model, or 'train'.")
    languages = (source_language, target_language)
    origin, importer = _kind(path)
    logger.info("importing %s as a model of %s", path, origin)
    with replaced_directory(output) as temporary:
        if origin == "paraforge":
            return _copy(path, temporary)
        entries = importer(path, temporary, languages)
        return write_description(temporary, origin=origin, languages=languages, entries=entries)


def _kind(path: Path) -> tuple[str, Callable[[Path, Path, Languages], dict[str, Any]]]:
    folder = path if path.is_dir() else path.parent
    if path.is_file():
        if path.suffix == ".pt":
            return "fairseq", _import_fairseq
    elif (folder / MODEL_FILE).is_file():
        return "paraforge", _import_ctranslate2
    elif (folder / "model.bin").is_file():
        return "ctranslate2", _import_ctranslate2
    elif (folder / "decoder.yml").is_file():
        return "opus-mt", _import_opus_mt
    elif (folder / "config.json").is_file() and any(
        (folder / name).is_file() for name in _TRANSFORMERS_WEIGHTS
    ):
        return "transformers", _import_transformers
    elif any(folder.glob("*.pt")):
        return "fairseq", _import_fairseq
    raise InputError(
        "not a model that can be imported",
        path,
        remedy="There should be a fairseq checkpoint (.pt), or a directory with one, with model.bin "
        "(CTranslate2), with decoder.yml (OPUS-MT, Marian), or with config.json and weights (Transformers).",
    )


def _copy(path: Path, output: Path) -> dict[str, Any]:
    description: dict[str, Any] = read_json(path / MODEL_FILE)
    check_files(path)
    for name in [*description["files"], MODEL_FILE]:
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path / name, output / name)
    return description


def _import_fairseq(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    folder = path if path.is_dir() else path.parent
    checkpoint = _checkpoint(folder) if path.is_dir() else path
    dictionaries = {language: folder / f"dict.{language}.txt" for language in languages}
    types = {language: read_dictionary(file) for language, file in dictionaries.items()}
    source, target = find_sentencepiece(folder)
    for file, language in ((source, languages[0]), (target, languages[1])):
        check_pieces(load_processor(file), types[language], file)
    state = normalise_checkpoint(checkpoint, types[languages[0]], types[languages[1]], languages)
    return write_fairseq_model(state, dictionaries, {"source": source, "target": target}, output, languages)


def _checkpoint(folder: Path) -> Path:
    named = [folder / name for name in _CHECKPOINTS if (folder / name).is_file()]
    found = named or sorted(folder.glob("*.pt"))
    if not named and len(found) > 1:
        raise InputError(
            f"which of {len(found)} checkpoints?", folder, remedy="Give nmt.model the checkpoint's own path."
        )
    return found[0]


def _import_ctranslate2(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    files = [path / "model.bin", *sorted(path.glob("*vocabulary.*")), path / "config.json", path / "vmap.txt"]
    if not any("vocabulary" in file.name for file in files):
        raise InputError("no vocabulary beside model.bin: not a whole CTranslate2 model", path)
    folder = output / "ctranslate2"
    folder.mkdir()
    for file in files:
        if file.is_file():
            shutil.copyfile(file, folder / file.name)
    _take_sentencepiece(path, output)
    _try(output, path)
    return {"engines": {"ctranslate2": "ctranslate2"}}


def _import_opus_mt(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    from ctranslate2.converters import OpusMTConverter

    _take_sentencepiece(path, output)
    _convert(OpusMTConverter(str(path)), path, output)
    _try(output, path)
    return {"engines": {"ctranslate2": "ctranslate2"}}


def _import_transformers(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    require("transformers", "transformers")
    from ctranslate2.converters import TransformersConverter

    _take_sentencepiece(path, output)
    affixes = _transformers_affixes(path, load_processor(output / "source.spm"), languages)
    _convert(TransformersConverter(str(path)), path, output)
    config = read_json(path / "config.json")
    entries = {
        "engines": {"ctranslate2": "ctranslate2"},
        "maximum_source_tokens": int(config.get("max_position_embeddings") or 1024),
        **affixes,
    }
    _try(output, path)
    return entries


def _transformers_affixes(path: Path, processor: Any, languages: Languages) -> dict[str, list[str]]:
    """What the tokeniser puts around a sentence's pieces, and the target's language token if there is one."""
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path), local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise InputError(f"its tokeniser cannot be loaded: {_last_line(error)}", path) from error
    target_prefix: list[str] = []
    if hasattr(tokenizer, "src_lang"):
        source, target = (_language_token(tokenizer, language, path) for language in languages)
        tokenizer.src_lang = source.strip("_") if source.startswith("__") else source
        target_prefix = [target]
    text = "ano"
    tokens = list(map(str, tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])))
    pieces = processor.encode(text, out_type=str)
    for start in range(len(tokens) - len(pieces) + 1):
        if [_same(t, p) for t, p in zip(tokens[start:], pieces, strict=False)].count(True) == len(pieces):
            return {
                "source_prefix": tokens[:start],
                "source_suffix": tokens[start + len(pieces) :],
                "target_prefix": target_prefix,
            }
    raise InputError(
        f"its tokeniser gives {' '.join(tokens)}, its SentencePiece model {' '.join(pieces)}",
        path,
        remedy="Only models whose tokens are SentencePiece's can be imported: Marian, M2M-100, NLLB, mBART.",
    )


def _same(word: str, piece: str) -> bool:
    return word in (piece, "<unk>")


def _language_token(tokenizer: Any, language: str, path: Path) -> str:
    known = tokenizer.get_vocab()
    for name in (language, f"__{language}__", *_LANGUAGE_TOKENS.get(language, ())):
        if name in known:
            return name
    raise InputError(
        f"it has no token for the language {language!r}",
        path,
        remedy="Set nmt.source_language and nmt.target_language to its language tokens.",
    )


def _take_sentencepiece(path: Path, output: Path) -> None:
    for side, file in zip(("source", "target"), find_sentencepiece(path), strict=True):
        load_processor(file)
        shutil.copyfile(file, output / f"{side}.spm")


def _convert(converter: Any, path: Path, output: Path) -> None:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            converter.convert(str(output / "ctranslate2"), force=True)
    except (ValueError, KeyError, RuntimeError, NotImplementedError, AttributeError, OSError) as error:
        raise InputError(f"CTranslate2 cannot convert this model: {_last_line(error)}", path) from error


def _try(output: Path, path: Path) -> None:
    """Load a converted model, and check that its vocabulary and the SentencePiece models belong together."""
    import ctranslate2

    folder = output / "ctranslate2"
    try:
        ctranslate2.Translator(str(folder), device="cpu")
    except (RuntimeError, ValueError) as error:
        raise InputError(f"CTranslate2 cannot load this model: {_last_line(error)}", path) from error
    for side in ("source", "target"):
        types = _types(folder, side)
        if types is not None:
            check_pieces(load_processor(output / f"{side}.spm"), types, path)


def _types(folder: Path, side: str) -> list[str] | None:
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        if (folder / f"{name}.json").is_file():
            return [str(word) for word in read_json(folder / f"{name}.json")]
        if (folder / f"{name}.txt").is_file():
            return (folder / f"{name}.txt").read_text(encoding="utf-8").split("\n")
    return None


def _last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else repr(error)
