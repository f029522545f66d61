"""Imports fairseq checkpoints with both dictionaries and SentencePiece models or BPE codes."""

from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.translation.models.checkpoint import fairseq_languages
from paraforge.translation.models.conversion import normalize_checkpoint, write_fairseq_model
from paraforge.translation.models.importers.ctranslate2 import Languages
from paraforge.translation.models.sentencepiece import check_pieces, read_dictionary
from paraforge.translation.models.subwords import copy_subwords, find_subwords, open_subwords

_CHECKPOINTS = ("checkpoint.pt", "checkpoint_best.pt", "model.pt", "checkpoint_last.pt")


ORIGIN = "fairseq"
WANTED = "a checkpoint (.pt, fairseq)"


def recognizes(path: Path) -> bool:
    """Return whether a path is a checkpoint or a directory with one."""
    return (path.is_file() and path.suffix == ".pt") or (path.is_dir() and any(path.glob("*.pt")))


def languages_of(path: Path, source_language: str | None, target_language: str | None) -> Languages:
    """Return the checkpoint's languages, which must be the given ones, if any."""
    return fairseq_languages(checkpoint_of(path), source_language, target_language)


def convert_model(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    """Write a checkpoint (or a directory's) in the project's layout, in fairseq's and CTranslate2's form.

    Raises InputError if a part is missing, or checkpoint, dictionaries and subwords do not belong together.
    """
    checkpoint = checkpoint_of(path)
    folder = checkpoint.parent
    dictionaries = {language: folder / f"dict.{language}.txt" for language in languages}
    types = {language: read_dictionary(file) for language, file in dictionaries.items()}
    subwords: dict[str, Path] = {}
    for side, file, language in zip(
        ("source", "target"), find_subwords(folder, languages), languages, strict=True
    ):
        subwords[side] = copy_subwords(file, output, side)
        check_pieces(open_subwords(subwords[side], language), types[language], file)
    state = normalize_checkpoint(checkpoint, types[languages[0]], types[languages[1]], languages)
    try:
        return write_fairseq_model(state, dictionaries, subwords, output, languages)
    except InputError as error:  # the path is of a temporary copy
        raise InputError(error.message, checkpoint, remedy=error.remedy) from error


def checkpoint_of(path: Path) -> Path:
    """Return the checkpoint: the file, or a directory's best. Raises InputError if a directory has several
    without a known name."""
    if path.is_file():
        return path
    folder = path
    named = [folder / name for name in _CHECKPOINTS if (folder / name).is_file()]
    checkpoints = named or sorted(folder.glob("*.pt"))
    if not named and len(checkpoints) > 1:
        raise InputError(
            f"found {len(checkpoints)} checkpoints; name one",
            folder,
            remedy="Pass the checkpoint's own path.",
        )
    return checkpoints[0]
