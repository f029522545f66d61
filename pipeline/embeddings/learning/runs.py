"""Runs in the work directory: a killed one resumes, and a finished one is reused."""

import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from paraforge.base.errors import InputError, naming
from paraforge.base.files import (
    check_digests,
    read_json,
    remove_directory,
    write_digests,
    write_json,
)
from paraforge.base.shards.work import WorkDirectory, copy_files, replaced_directory

Store = TypeVar("Store")
logger = logging.getLogger(__name__)

MODEL = "model"
"""The model's directory inside its training's."""
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
    """Train in `root`/KIND/KEY, resuming a killed run or reusing a finished one, and replace `output` with
    the model. Returns the report.

    key: hash of everything that the result depends on.
    train: trains in a directory, leaves the model in its `MODEL`, and returns the report as JSON values.
    open_model: raises InputError if there is no complete model.
    scratch: files to remove when the model is finished.

    Raises:
        InputError: `output` cannot be written, checked before training.
        WorkLockedError: another process runs the same training. And what `train` raises.
    """
    _check_place(output, root)
    work = WorkDirectory(f"{kind}/{key[:_KEY_DIGITS]}", root)
    with work.lock():
        model, report = work.path / MODEL, work.path / _REPORT
        if report.is_file() and _is_whole(work.path, open_model):
            logger.info("this model was trained before: using %s", work.path)
        else:
            with naming(work.path, "written"):
                result = train(work.path)
            write_digests(model)
            write_json(report, result)  # last: a training with a report is finished
        for name in scratch:  # also after an earlier run, which may have been killed here
            remove_directory(work.path / name)
        with replaced_directory(output) as temporary:
            copy_files(model, temporary)
        return read_json(report)


def open_or_build(open_: Callable[[], Store], build: Callable[[], Store]) -> Store:
    """Return the result of an earlier run if `open_` finds it complete, otherwise build it from the data."""
    try:
        return open_()
    except InputError:  # missing or incomplete
        return build()


def _check_place(output: Path, root: Path) -> None:
    if root.resolve().is_relative_to(output.resolve()):
        problem = "it contains the work directory, which the model would replace"
        raise InputError(problem, output, remedy="Choose another output.")
    if output.is_file() and not output.is_symlink():
        raise InputError("is a file, but a directory must be written there", output, remedy="Move it first.")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", output) from error


def _is_whole(place: Path, open_model: Callable[[Path], object]) -> bool:
    """Return whether the report can be read and the model is unchanged."""
    try:
        read_json(place / _REPORT)
        problems = check_digests(place / MODEL)
        if not problems:
            open_model(place / MODEL)
    except InputError as error:
        problems = [error]
    for problem in problems:
        logger.warning("%s. It is trained again", problem)
    return not problems
