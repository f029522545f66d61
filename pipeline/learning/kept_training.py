"""A training that is kept until its model is finished, and the finished model as long as it is of use."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paraforge.errors import InputError
from paraforge.files import read_json, read_json_or_none, write_json
from paraforge.shards.work import WorkDirectory, link_or_copy, replaced_directory

logger = logging.getLogger(__name__)

MODEL = "model"
"""The model's directory, in that of its training."""
_REPORT = "report.json"
_KEY_DIGITS = 40


def keep_training(
    kind: str,
    key: str,
    root: Path,
    output: Path,
    *,
    train: Callable[[Path], dict[str, Any]],
    open_model: Callable[[Path], object],
    scratch: Sequence[str],
) -> dict[str, Any]:
    """Train into `root`/KIND/KEY, where a killed run is gone on with, and put the model at `output`, which is
    replaced as a whole. A training that is finished there is taken as it is.

    key: hash of all that the result depends on.
    train: trains in a directory, leaves the model in its `MODEL`, and returns the report, fit for JSON.
    open_model: raises InputError where there is no whole model.
    scratch: what is not wanted any more when the model is finished.

    Returns the report.
    Raises:
        WorkLockedError: another process is at the same training. And what `train` raises.
    """
    work = WorkDirectory(f"{kind}/{key[:_KEY_DIGITS]}", root)
    with work.lock():
        model, report = work.path / MODEL, work.path / _REPORT
        if read_json_or_none(report) and _is_whole(model, open_model):
            logger.info("this model has been trained before: taken from %s", work.path)
        else:
            write_json(report, train(work.path))
            for name in scratch:
                shutil.rmtree(work.path / name, ignore_errors=True)
        with replaced_directory(output) as temporary:
            for file in sorted(model.iterdir()):
                link_or_copy(file, temporary / file.name)
        return read_json(report)


def check_place(output: Path) -> None:
    """Find out before hours of training whether the model can be written.

    Raises:
        InputError: it cannot.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", output) from error


def _is_whole(model: Path, open_model: Callable[[Path], object]) -> bool:
    try:
        open_model(model)
    except InputError:
        return False
    return True
