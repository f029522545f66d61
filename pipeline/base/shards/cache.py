"""Copies of models in the cache of a worker's host: which jobs use them, and which are removed when the cache
is full."""

import json
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from paraforge.base.files import hash_json, read_json_or_none, remove_directory, sweep

logger = logging.getLogger(__name__)

_CONTENT = "content"
_LISTING = "listing.json"
_LOCK = "lock"
_USED = ".used"


@dataclass(frozen=True)
class Cache:
    """A directory that all workers of a host share.

    A copy is ``KEY/content/NAME``; its last use is the time of ``KEY/listing.json``. Jobs have directories of
    their own, ``.job.*.tmp``, with a file ``KEY.used`` for each copy that they use. These files are read and
    written under the lock of the cache, so that no copy is removed between being found and being used.

    most: bytes of all copies together, unless jobs use more; None: no bound.
    """

    directory: Path
    most: int | None = None

    def enter(self, name: str, listed: Sequence[Sequence[str]], job: Path) -> Path:
        """Where the copy of a file or directory is, or is to be put; a job uses it from now on.

        name: its name. listed: name and SHA-256 of each of its files. job: directory of the job.
        """
        entry = self.directory / hash_json([name, listed])
        with self._lock():
            (job / f"{entry.name}{_USED}").touch()
            entry.mkdir(exist_ok=True)
            # Written elsewhere, so that a process that is killed leaves nothing else in the entry.
            (job / _LISTING).write_text(json.dumps({"name": name, "files": listed}))
            (job / _LISTING).replace(entry / _LISTING)
        return entry / _CONTENT / name

    def use(self, copy: Path, job: Path) -> bool:
        """Note that a job uses a copy that was whole before; False: it has been removed since."""
        entry = copy.parents[1]
        with self._lock():
            try:
                os.utime(entry / _LISTING)
            except FileNotFoundError:
                return False
            (job / f"{entry.name}{_USED}").touch()
        return True

    def filling(self, copy: Path) -> FileLock:
        """The lock to hold while putting files into a copy."""
        return FileLock(copy.parents[1] / _LOCK)

    def leave(self, job: Path) -> None:
        """Note the end of a job, before its directory is removed."""
        for path in job.glob(f"*{_USED}"):
            with suppress(OSError):
                os.utime(self.directory / path.stem / _LISTING)

    def prune(self) -> None:
        """Remove copies that no job uses, those unused for longest first, until the others are small enough.

        A copy is removed under a hidden name, which the next call removes if this one is killed. A directory
        that holds anything else than :meth:`enter` and its caller have made stays.
        """
        if self.most is None:
            return
        with self._lock():
            sweep(self.directory)
            found = []
            for listing in self.directory.glob(f"*/{_LISTING}"):
                with suppress(FileNotFoundError):
                    paths = [path for path in listing.parent.rglob("*") if path.is_file()]
                    size = sum(path.stat().st_size for path in paths)
                    found.append((listing.stat().st_mtime_ns, listing.parent, size))
            total = sum(size for _, _, size in found)
            used = self._used()
            for _, entry, size in sorted(found):
                if total <= self.most:
                    return
                if entry.name in used or not _is_ours(entry):
                    continue
                try:
                    remove_directory(entry)
                except OSError as error:
                    logger.warning("%s cannot be removed: %s", entry, error.strerror)
                    continue
                total -= size
                logger.info("removed %s from the cache of this host: %d bytes", entry, size)
            if total > self.most:
                logger.warning("%s: %d bytes of at most %d are in use", self.directory, total, self.most)

    def _used(self) -> set[str]:
        """Keys of all copies that jobs use."""
        used: set[str] = set()
        for job in self.directory.glob(".job.*.tmp"):
            with suppress(FileNotFoundError):  # a job that has ended meanwhile
                used.update(path.stem for path in job.iterdir() if path.suffix == _USED)
        return used

    def _lock(self) -> FileLock:
        return FileLock(self.directory / _LOCK)


def _is_ours(entry: Path) -> bool:
    """Whether a directory is a copy, or a part of one, and nothing else is in it."""
    listing: dict[str, Any] = read_json_or_none(entry / _LISTING) or {}
    name, files = listing.get("name"), listing.get("files", ())
    try:
        if entry.is_symlink() or hash_json([name, files]) != entry.name:
            return False
        root = entry / _CONTENT / str(name)
        made = {entry / _LOCK, entry / _LISTING, *(root / file if file else root for file, _ in files)}
    except (TypeError, ValueError):
        return False
    return all(path in made for path in entry.rglob("*") if path.is_symlink() or not path.is_dir())
