"""Files of unfinished work, each with its SHA-256 beside it: a run that resumes uses no other bytes."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paraforge.base.files import atomic_path, remove_directory, sha256_file, write_json, write_whole

logger = logging.getLogger(__name__)

_ENDING = ".sha256"


@contextmanager
def sealed_path(path: Path) -> Iterator[Path]:
    """As :func:`~paraforge.base.files.atomic_path`; the file's SHA-256 is there before it has its name."""
    with atomic_path(path) as temporary:
        yield temporary
        _write_seal(path, temporary)


def seal(path: Path) -> None:
    """Write a finished file's SHA-256 beside it."""
    _write_seal(path, path)


def _write_seal(path: Path, written: Path) -> None:
    # Killed before the new file has its name, the old one is still right.
    digests = [sha256_file(one) for one in {written, path} if one.is_file()]
    write_whole(_seal_of(path), "\n".join(digests))


def write_sealed_json(path: Path, value: Any) -> None:
    """Write a JSON file and seal it."""
    with sealed_path(path) as temporary:
        write_json(temporary, value)


def remove_sealed(path: Path) -> None:
    """Remove a file that is needed no more."""
    _seal_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def is_sealed(path: Path) -> bool:
    """Whether a file is there as it was written."""
    try:
        return sha256_file(path) in _seal_of(path).read_text(encoding="utf-8", errors="replace").split()
    except FileNotFoundError:
        return False


def is_whole(path: Path) -> bool:
    """Whether a file is there, and as it was written if it was sealed: older versions did not seal all."""
    return path.is_file() and (is_sealed(path) or not _seal_of(path).exists())


def can_resume(directory: Path, *inside: str) -> bool:
    """Whether there is a directory of a killed run, all of whose sealed files are as they were written.

    Files that are not sealed were being written and are removed. Where a sealed file is damaged, the
    directory is removed, with a warning.

    inside: directories in it that have sealed files, too; what is in others is not looked at.
    """
    if not directory.is_dir():
        return False
    files = [path for one in ("", *inside) for path in sorted((directory / one).glob("*")) if path.is_file()]
    names = {*files}
    sealed = [path for path in files if _seal_of(path) in names]
    for path in names.difference(sealed, map(_seal_of, sealed)):
        path.unlink()
    with ThreadPoolExecutor() as pool:  # hashlib releases the interpreter lock
        for path, is_right in zip(sealed, pool.map(is_sealed, sealed), strict=True):
            if not is_right:
                logger.warning("%s is damaged: the work in %s begins anew", path.name, directory)
                remove_directory(directory)
                return False
    return True


def _seal_of(path: Path) -> Path:
    return path.with_name(path.name + _ENDING)
