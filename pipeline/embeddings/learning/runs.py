"""Runs in the work directory: one that was killed is resumed, one that is finished is not done again."""

import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from paraforge.base.errors import InputError
from paraforge.base.files import (
    DIGESTS,
    check_digests,
    read_json,
    remove_directory,
    write_digests,
    write_json,
)
from paraforge.base.shards.work import WorkDirectory, link_or_copy, replaced_directory

Store = TypeVar("Store")
logger = logging.getLogger(__name__)

MODEL = "model"
"""The model's directory, in that of its training."""
_REPORT = "report.json"
_KEY_DIGITS = 40


def run_once(
    kind: str,
    key: str,
    root: Path,
    output: Path,
    *,
    train: Callable[[Path], dict[str, Any]],
    open_model: Callable[[Path], object],
    scratch: Sequence[str],
) -> dict[str, Any]:
    """Train in `root`/KIND/KEY, where a killed run is resumed, and put the model at `output`, which is
    replaced as a whole; returns the report. A run that is finished there is reused.

    key: hash of all that the result depends on.
    train: trains in a directory, leaves the model in its `MODEL`, and returns the report, fit for JSON.
    open_model: raises InputError where there is no whole model.
    scratch: what is removed when the model is finished.

    Raises:
        InputError: `output` cannot be written, which is found out before hours of training.
        WorkLockedError: another process runs the same training. And what `train` raises.
    """
    _check_place(output)
    work = WorkDirectory(f"{kind}/{key[:_KEY_DIGITS]}", root)
    with work.lock():
        model, report = work.path / MODEL, work.path / _REPORT
        if report.is_file() and _is_whole(work.path, open_model):
            logger.info("this model was trained before: using %s", work.path)
        else:
            found = train(work.path)
            write_digests(model)
            write_json(report, found)
            write_digests(work.path, [_REPORT, f"{MODEL}/{DIGESTS}"])
            for name in scratch:
                remove_directory(work.path / name)
        with replaced_directory(output) as temporary:
            for file in sorted(model.iterdir()):
                link_or_copy(file, temporary / file.name)
        return read_json(report)


def open_or_build(directory: Path, open_: Callable[[], Store], build: Callable[[], Store]) -> Store:
    """Return what an earlier, killed run left in a directory where it is whole, otherwise what `build` makes
    there of the data."""
    try:
        if not check_digests(directory):
            return open_()
    except InputError:  # missing, or not whole
        pass
    store = build()
    write_digests(directory)
    return store


def _check_place(output: Path) -> None:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", output) from error


def _is_whole(place: Path, open_model: Callable[[Path], object]) -> bool:
    """Return whether report and model are as they were written."""
    try:
        problems = [problem for one in (place, place / MODEL) for problem in check_digests(one)]
        if not problems:
            read_json(place / _REPORT)
            open_model(place / MODEL)
    except InputError as error:
        problems = [error]
    for problem in problems:
        logger.warning("%s. It is trained again", problem)
    return not problems
