"""Imports pretrained models in any known format, from a path or the Hub, as ``models/nmt`` has it."""

import logging
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, one_line, require
from paraforge.base.files import at_home, read_json
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.compression import refuse_lfs_pointer
from paraforge.translation.models.conversion import write_description
from paraforge.translation.models.importers import importer_for
from paraforge.translation.models.importers.ctranslate2 import FOLDER, check_whole, vocabulary_of
from paraforge.translation.models.model import MODEL_FILE, open_model
from paraforge.translation.models.subwords import is_bpe, language_tokens

logger = logging.getLogger(__name__)


_LONGEST_MESSAGE = 300
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SMALL = (".json", ".spm", ".model", ".txt", ".yml", ".yaml", ".bpe", ".vocab", ".spm32k")


def is_hub_name(text: str) -> bool:
    """Return whether a text has the form of a Hub model: ORGANIZATION/NAME, optionally with @REVISION."""
    return _NAME.fullmatch(text.partition("@")[0]) is not None


def download(text: str) -> tuple[Path, str]:
    """Download a Hub model into the user's Hugging Face cache.

    Python code is not downloaded, nor pickled weights if there are safetensors.

    text: ORGANIZATION/NAME, or ORGANIZATION/NAME@REVISION with a branch, tag or commit.

    Returns the directory, and ORGANIZATION/NAME@COMMIT.

    Raises:
        InputError: no such model or revision, no access to it, or the Hub cannot be reached.
        MissingPackageError: huggingface_hub is not installed.
    """
    hub = require("huggingface_hub", "hub")
    name, _, revision = text.partition("@")
    try:
        info = hub.HfApi().model_info(name, revision=revision or None)
        files = select_files([file.rfilename for file in info.siblings or []])
        paths = [hub.hf_hub_download(name, file, revision=info.sha) for file in files]
    except Exception as error:  # the library does not wrap the errors of its HTTP client, which has changed
        raise InputError(
            f"{text} is neither a local path nor a model on the Hub: {one_line(error)[:_LONGEST_MESSAGE]}",
            remedy="Check the name and the revision; for a private or gated model run 'hf auth login'. "
            "Without a connection, use the path of a directory, or set HF_ENDPOINT to a mirror.",
        ) from error
    if not paths:
        raise InputError(f"{name} on the Hub has no files of a translation model")
    return Path(paths[0]).parent, f"{name}@{info.sha}"


def select_files(names: list[str]) -> list[str]:
    """Return the files of a repository that an import can need: no code, and one form of the weights."""
    top = [name for name in names if "/" not in name]
    weights = [name for name in top if name.endswith((".safetensors", ".pt"))]
    if not any(name.endswith(".safetensors") for name in weights):
        weights += [name for name in top if re.fullmatch(r"pytorch_model(-\d+-of-\d+)?\.bin", name)]
    weights += [name for name in top if name == "model.bin"]  # CTranslate2
    small = [name for name in top if name.endswith(_SMALL) or (is_bpe(name) and not name.endswith(".py"))]
    return sorted({*weights, *small})


# Defaults if neither the user nor the model names them.
_LANGUAGES = ("cs", "en")


def import_model(
    source: Path | str,
    output: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
) -> dict[str, Any]:
    """Write a pretrained model in the layout of ``models/nmt``; ``output`` is replaced atomically.

    source: a fairseq checkpoint or its directory (with both dictionaries and SentencePiece model or BPE
        codes); a directory of CTranslate2, of Transformers, or of this layout; or a model on the Hub,
        ORGANIZATION/NAME[@REVISION].
    output: directory to write.
    source_language, target_language: codes; for fairseq as in the dictionaries' names, for multilingual
        models also language tokens. None: the model's own, otherwise cs and en.

    Returns ``model.json``.

    Raises:
        InputError: no such model, a part of it is missing, or its parts do not belong together.
        MissingPackageError: a package for the format is not installed.
    """
    path, name = _locate(source)
    _check_pointers(path)
    logger.info("importing %s", name)
    with replaced_directory(output) as temporary:
        languages = (source_language or _LANGUAGES[0], target_language or _LANGUAGES[1])
        try:
            if path.is_dir() and (path / MODEL_FILE).is_file():
                return _copy(path, temporary, (source_language, target_language))
            importer = importer_for(path)
            languages_of = getattr(importer, "languages_of", None)
            if languages_of is not None:
                languages = languages_of(path, source_language, target_language)
            entries = importer.convert_model(path, temporary, languages)
            _check_start(temporary, entries, path)
            if not any(entries.get(affix) for affix in ("source_prefix", "target_prefix")):
                _check_language(temporary, languages[1], path)
        except InputError as error:  # name the original in errors, not its conversion
            raise error.renamed(temporary / FOLDER, path).renamed(temporary, path) from error
        return write_description(
            temporary, origin=importer.ORIGIN, languages=languages, entries=entries, imported_from=name
        )


def _locate(source: Path | str) -> tuple[Path, str]:
    """Return a model's path and name; it is downloaded if it is on the Hub. Raises InputError if it does not
    exist."""
    path = at_home(source)
    if path.exists():
        return path, path.name or path.resolve().name
    if is_hub_name(str(source)):
        return download(str(source))
    raise InputError(
        "no such model", source, remedy="Pass the path of a model, or ORGANIZATION/NAME on the Hub."
    )


def _check_pointers(path: Path) -> None:
    """Raise InputError for a model whose files Git LFS has not fetched."""
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            refuse_lfs_pointer(file)


def _copy(path: Path, output: Path, requested: tuple[str | None, str | None]) -> dict[str, Any]:
    """Copy a model of this layout, with its own languages. Its checksums prove that it is complete, not that
    it is sound."""
    model = open_model(path)
    own = (model.source_language, model.target_language)
    chosen = tuple(language or known for language, known in zip(requested, own, strict=True))
    if chosen != own:
        logger.warning(
            "the model was imported from %s to %s; its languages were not changed to %s to %s", *own, *chosen
        )
    description: dict[str, Any] = read_json(path / MODEL_FILE)
    for name in [*description["files"], MODEL_FILE]:
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path / name, output / name)
    if FOLDER in model.folders:
        check_whole(output, path, (model.source_language, model.target_language))
    return description


def _check_start(output: Path, entries: Mapping[str, Any], path: Path) -> None:
    """Raise InputError if the decoder needs a language token and none is given."""
    configuration = output / FOLDER / "config.json"
    values = read_json(configuration) if configuration.is_file() else {}
    if values.get("decoder_start_token", "") is None and not entries.get("target_prefix"):
        raise InputError(
            "its decoder begins with a language token, and it has none for the target language",
            path,
            remedy="Pass the model's own token for the language with --to.",
        )


def _check_language(output: Path, target: str, path: Path) -> None:
    """Raise InputError for a target language for which a multilingual model has no token."""
    tags = [
        token
        for token in language_tokens(vocabulary_of(output / FOLDER, "source") or [])
        if re.fullmatch(r">>[\w-]+<<|<2[\w-]+>", token)
    ]
    if tags:
        shown = ", ".join(tags[:12]) + (", ..." if len(tags) > 12 else "")
        raise InputError(
            f"it has no token for the language {target!r}",
            path,
            remedy=f"Use a language of {shown} (--to).",
        )
