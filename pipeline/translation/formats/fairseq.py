"""fairseq checkpoints, with both dictionaries and SentencePiece models or BPE codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.translation.conversion import normalise_checkpoint, write_fairseq_model
from pipeline.translation.formats.ctranslate2 import Languages
from pipeline.translation.subwords import copy_subwords, find_subwords, open_subwords
from pipeline.translation.vocabulary import check_pieces, read_dictionary

_CHECKPOINTS = ("checkpoint.pt", "checkpoint_best.pt", "model.pt", "checkpoint_last.pt")


def import_fairseq_checkpoint(path: Path, output: Path, languages: Languages) -> dict[str, Any]:
    """Give a checkpoint, or a directory's, the project's layout, in fairseq's and CTranslate2's form.

    Raises:
        InputError: a part is missing, or checkpoint, dictionaries and subwords do not belong together.
    """
    folder = path if path.is_dir() else path.parent
    checkpoint = _checkpoint(folder) if path.is_dir() else path
    dictionaries = {language: folder / f"dict.{language}.txt" for language in languages}
    types = {language: read_dictionary(file) for language, file in dictionaries.items()}
    subwords: dict[str, Path] = {}
    for side, file, language in zip(
        ("source", "target"), find_subwords(folder, languages), languages, strict=True
    ):
        subwords[side] = copy_subwords(file, output, side)
        check_pieces(open_subwords(subwords[side], language), types[language], file)
    state = normalise_checkpoint(checkpoint, types[languages[0]], types[languages[1]], languages)
    return write_fairseq_model(state, dictionaries, subwords, output, languages)


def _checkpoint(folder: Path) -> Path:
    named = [folder / name for name in _CHECKPOINTS if (folder / name).is_file()]
    found = named or sorted(folder.glob("*.pt"))
    if not named and len(found) > 1:
        raise InputError(
            f"which of {len(found)} checkpoints?", folder, remedy="Give nmt.model the checkpoint's own path."
        )
    return found[0]
