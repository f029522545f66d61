"""The files that a job uses on the submitting host's disk."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paraforge.base.files import write_whole


@dataclass(frozen=True)
class JobFiles:
    """The files that a job uses on the submitting host's disk, as absolute paths.

    kept: files and directories that many jobs read, such as models. A worker keeps copies in its cache.
    read: files that only this job reads.
    written: files that the job writes, in the order in which they must appear on the submitting host. One
        that does not exist when the job is done is removed there.
    """

    kept: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    written: tuple[Path, ...] = ()

    def commit(self, contents: Sequence[bytes | None]) -> None:
        """Write a worker's files to the submitting host's disk."""
        for path, content in zip(self.written, contents, strict=True):
            path.unlink(missing_ok=True) if content is None else write_whole(path, content)
