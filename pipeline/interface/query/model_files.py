"""Checks the files of a model against the digests, or the index, that were written with it."""

from __future__ import annotations

from pathlib import Path

from paraforge.base.errors import InputError, describing
from paraforge.base.files import DIGESTS, check_digests, read_json
from paraforge.translation.models.model import MODEL_FILE, check_files

_AGAIN = "Make the model again ('dvc repro'), or fetch it again from where it came from."


def is_model(path: Path) -> bool:
    """Whether a directory is a model's: it has digests, or the index of a translation model."""
    return (path / DIGESTS).is_file() or (path / MODEL_FILE).is_file()


def verify_model(model: Path) -> list[InputError]:
    """All that is wrong with the files of a model, which its digests or its index name."""
    problems = check_digests(model) if (model / DIGESTS).is_file() else []
    for index in sorted(model.rglob(MODEL_FILE)):
        try:
            with describing(index, "damaged index"):
                check_files(index.parent, dict(read_json(index)["files"]))
        except InputError as error:
            problems.append(error)
    return [InputError(p.message, p.path or model, remedy=p.remedy or _AGAIN) for p in problems]
