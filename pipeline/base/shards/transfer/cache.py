"""Cache of models on a worker's host: which jobs use them, and which to remove when the cache is full."""

import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from paraforge.base.files import hash_json, remove_directory, sweep, write_whole

logger = logging.getLogger(__name__)

_CONTENT, _LOCK = "content", "lock"
# Files in a copy that record its last use and that all of its files have arrived.
_LAST_USE, _COMPLETE = "last-use", "complete"
_USED = ".used"
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Cache:
    """A cache directory that all workers on a host share.

    A copy is ``KEY/content/NAME``. Each job has a directory ``.job.*.tmp`` with a file ``KEY.used`` for each
    copy that it uses. These files are read and written under the cache's lock, so that no copy is removed
    between being found and being used.

    most: limit in bytes for all copies together, unless jobs use more; None for no limit.
    """

    directory: Path
    most: int | None = None

    def enter(self, name: str, listed: Sequence[Sequence[str]], job: Path) -> Path:
        """Return the path of the copy of a file or directory, whether or not it exists yet, and mark it as
        used by a job.

        name: name of the file or directory. listed: name and SHA-256 of each of its files.
        job: the job's directory.
        """
        entry = self.directory / hash_json([name, listed])
        with self._lock():
            (job / f"{entry.name}{_USED}").touch()
            entry.mkdir(exist_ok=True)
            (entry / _LAST_USE).touch()
        return entry / _CONTENT / name

    def use(self, copy: Path, job: Path) -> bool:
        """Mark a complete copy as used by a job. Returns False if there is none, e.g. because it was
        removed."""
        entry = copy.parents[1]
        with self._lock():
            if not self.is_complete(copy):
                return False
            (entry / _LAST_USE).touch()
            (job / f"{entry.name}{_USED}").touch()
        return True

    def filling(self, copy: Path) -> FileLock:
        """Return the lock to hold while putting files into a copy."""
        return FileLock(copy.parents[1] / _LOCK)

    def is_complete(self, copy: Path) -> bool:
        """Return whether all files of a copy have arrived."""
        return (copy.parents[1] / _COMPLETE).exists()

    def complete(self, copy: Path) -> None:
        """Mark a copy as complete; called under its lock."""
        write_whole(copy.parents[1] / _COMPLETE, "")

    def leave(self, job: Path) -> None:
        """Release the copies that a job used, before its directory is removed."""
        for path in job.glob(f"*{_USED}"):
            with suppress(OSError):
                os.utime(self.directory / path.stem / _LAST_USE)

    def prune(self, all_unused: bool = False) -> None:
        """Remove unused copies, least recently used first, until the others fit the limit.

        all_unused: remove all of them to free disk space. Only directories with the name of a copy are
            touched.
        """
        most = 0 if all_unused else self.most
        if most is None:
            return
        with self._lock():
            sweep(self.directory)
            found = []
            for last_use in self.directory.glob(f"*/{_LAST_USE}"):
                if _KEY.fullmatch(last_use.parent.name) and not last_use.parent.is_symlink():
                    size = sum(path.stat().st_size for path in last_use.parent.rglob("*") if path.is_file())
                    found.append((last_use.stat().st_mtime_ns, last_use.parent, size))
            total = sum(size for _, _, size in found)
            used = self._used()
            for _, entry, size in sorted(found):
                if (all_unused or total > most) and entry.name not in used:
                    remove_directory(entry)
                    total -= size
                    logger.info("removed %s from the cache of this host: %d bytes", entry, size)
            if total > most and not all_unused:
                logger.warning("%s: %d bytes of at most %d are in use", self.directory, total, most)

    def _used(self) -> set[str]:
        """Return the keys of all copies that jobs use."""
        used: set[str] = set()
        for job in self.directory.glob(".job.*.tmp"):
            with suppress(FileNotFoundError):  # a job that ended in the meantime
                used.update(path.stem for path in job.iterdir() if path.suffix == _USED)
        return used

    def _lock(self) -> FileLock:
        return FileLock(self.directory / _LOCK)
