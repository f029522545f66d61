"""Finds out which workers see the submitting host's disk."""

import logging
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from paraforge.base.files import scratch_directory
from paraforge.base.shards.cluster import connect, wait_for_worker, watched_connection
from paraforge.base.shards.resources import Resources

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Disk:
    """How a worker finds out whether it sees the submitting host's disk.

    project: directory there, for messages. token: a file there and its content; None if no worker sees it.
    cache: directory for copies on the worker; None for its user's cache. run: name of the run.
    """

    project: str
    token: tuple[Path, str] | None
    cache: Path | None
    run: str

    def is_seen(self) -> bool:
        """Return whether this process sees that disk."""
        if self.token is None:
            return False
        try:
            return self.token[0].read_text() == self.token[1]
        except (OSError, ValueError):
            return False


@contextmanager
def announced(resources: Resources) -> Iterator[Disk | None]:
    """Let workers find out whether they see this disk while the block runs; None if all of them do."""
    if resources.scheduler is None or resources.shared_disk:
        yield None
        return
    run = uuid.uuid4().hex
    project = f"{Path.cwd()} of {socket.gethostname()}"
    disk = Disk(project, None, resources.worker_cache, run)
    if resources.shared_disk is False:
        yield disk
        return
    with scratch_directory(resources.work.resolve() / "seen") as directory:
        (directory / "run").write_text(run)
        yield replace(disk, token=(directory / "run", run))


# The workers' answers by scheduler and work directory, so that a run asks only once.
_known: dict[tuple[str, Path], bool] = {}


def on_shared_disk(resources: Resources) -> bool:
    """Return whether all workers see this disk, asking only once per process; waits a while for a first
    worker."""
    if resources.scheduler is None or resources.shared_disk:
        return True
    if resources.shared_disk is None:
        asked = resources.scheduler, resources.work.resolve()
        if asked not in _known:
            _known[asked] = _is_seen(resources)
        if _known[asked]:
            return True
    logger.info("some workers do not see %s: steps that need all of it run here", Path.cwd())
    return False


def _is_seen(resources: Resources) -> bool:
    with announced(resources) as disk, connect(resources, 0) as client, watched_connection():
        assert disk is not None
        wait_for_worker(client)
        return all(seen is True for seen in client.run(disk.is_seen, on_error="return").values())
