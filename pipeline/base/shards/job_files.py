"""What a job uses of the disk of the host that asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paraforge.base.files import write_whole


@dataclass(frozen=True)
class JobFiles:
    """What a job uses of the disk of the host that asks; absolute paths.

    kept: files and directories that many jobs read, as models: a worker keeps copies in its cache.
    read: files of this job alone.
    written: files that the job leaves, in the order in which they are to appear on the host that asks; one
        that is not there when the job is done is removed there.
    """

    kept: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    written: tuple[Path, ...] = ()

    def commit(self, contents: Sequence[bytes | None]) -> None:
        """Write what a worker left, on the host that asks."""
        for path, content in zip(self.written, contents, strict=True):
            path.unlink(missing_ok=True) if content is None else write_whole(path, content)
