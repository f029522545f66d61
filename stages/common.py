"""Runs a stage: logging, signals, exit codes, and a check that its parameters and files do not change."""

import dataclasses
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from paraforge.base.errors import InputError
from paraforge.base.files import sha256_file
from paraforge.base.interrupts import errors_in_words
from paraforge.base.logs import configure_logging
from paraforge.interface.configuration import PARAMETERS, load_parameters, read_yaml
from paraforge.interface.configuration import Parameters as Parameters
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.inputs import INPUTS, LINKED, link_inputs, named_files
from paraforge.interface.project.creation import check_versions

# Up to this size a file is read again at the end even if its size and times are the same.
_SMALL = 16 << 20
_REMEDY = "Finished work is kept. Run the same command again."


@dataclass(frozen=True)
class _File:
    """A file's size and times from the file system, and its SHA-256; empty if unreadable."""

    size: int
    times: tuple[int, int]
    digest: str


@contextmanager
def unchanged(stage: str, read: Callable[[], Parameters]) -> Iterator[Parameters]:
    """Read a stage's parameters, and give them to the block.

    read: reads params.yaml and makes the links in ``inputs/STAGE``. Raises InputError after the block if a
    parameter of the stage or a file that it names has changed since.
    """
    values = _sections(stage)  # before anything reads them
    parameters = read()
    paths = sorted(_files_of(stage, parameters))
    with ThreadPoolExecutor() as pool:
        files = dict(zip(paths, pool.map(_look_at, paths), strict=True))
    yield parameters
    current = _sections(stage)
    changed = ", ".join(sorted(name for name, value in values.items() if current[name] != value))
    message = f"changed while the stage '{stage}' was running"
    if changed:
        raise InputError(f"{changed} {message}", PARAMETERS, remedy=_REMEDY)
    for path, before in files.items():
        if _has_changed(path, before):
            raise InputError(message, path, remedy=_REMEDY)


def _sections(stage: str) -> dict[str, Any]:
    """Return the stage's values in params.yaml, by the names that dvc.yaml lists."""
    content = read_yaml(PARAMETERS)[1] if PARAMETERS.is_file() else {}
    return {name: _value_at(content, name) for name in _names_of(stage)}


def _names_of(stage: str) -> Iterable[str]:
    dvc = Path("dvc.yaml")
    stages = (read_yaml(dvc)[1] or {}).get("stages", {}) if dvc.is_file() else {}
    # If a stage runs once for each of several models, its argument is the model's name.
    item = sys.argv[1] if len(sys.argv) > 1 else ""
    named = stages.get(stage, {}).get("params", [stage])
    return [name.replace("${item.name}", item) for name in named if isinstance(name, str)]


def _value_at(content: Any, name: str) -> Any:
    for key in name.split("."):
        content = content.get(key) if isinstance(content, Mapping) else None
    return content


def _files_of(stage: str, parameters: Parameters) -> set[Path]:
    paths = {link.resolve() for link in (INPUTS / stage).glob("*") if link.is_symlink()}
    for named in named_files(parameters, stage) if stage in LINKED else ():
        try:
            paths.update(path.resolve() for path in named.files())
        except InputError:
            pass  # the stage says what is missing
    return paths


def _look_at(path: Path) -> _File:
    try:
        status = path.stat()
        return _File(status.st_size, _times(status), sha256_file(path))
    except OSError:
        return _File(-1, (0, 0), "")


def _times(status: os.stat_result) -> tuple[int, int]:
    # The change time cannot be set back by a user, unlike the modification time.
    return status.st_mtime_ns, status.st_ctime_ns


def _has_changed(path: Path, before: _File) -> bool:
    try:
        status = path.stat()
        if status.st_size != before.size:
            return True
        same_times = _times(status) == before.times
        return not (same_times and status.st_size > _SMALL) and sha256_file(path) != before.digest
    except OSError:
        return before.size >= 0


logger = logging.getLogger(__name__)


def plain(value: Any) -> Any:
    """Convert dataclasses and pydantic models to a JSON value."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def parameters_of(stage: str) -> Parameters:
    """Read params.yaml, and make links in `inputs/STAGE` to the files that it names.

    Raises InputError if the project was made by another version, or if a value is not allowed.
    """
    check_versions()
    # Only in the first stage, because composing the parameters takes half a second.
    if stage == "ingest" and (stale := stale_words(Path())):
        logger.warning("%s", stale)
    parameters = load_parameters()
    link_inputs(parameters, [stage])
    return parameters


def run_stage(name: str, main: Callable[[Parameters], None]) -> None:
    """Run a stage of the project here; if it fails, exit with the error's exit code (docs/installation.md).

    A stage fails if its parameters or input files change while it runs: DVC would record the new ones for an
    output that was made with the old ones.
    """

    def tell(message: str) -> None:
        logger.error("%s", message)
        logger.debug("raised here:", exc_info=True)

    with errors_in_words(tell):
        configure_logging(name, brief=True)
        with unchanged(name, partial(parameters_of, name)) as parameters:
            main(parameters)
