"""A shard to make, the function that makes it, and the rows that it reports meanwhile."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from paraforge.errors import IncompleteError, ParaforgeError
from paraforge.shards.store import ShardRecord, read_aligned
from paraforge.shards.work import WorkDirectory

if TYPE_CHECKING:
    from paraforge.shards.step import Step

_report: ContextVar[Callable[[int], None] | None] = ContextVar("report_rows", default=None)
_functions: dict[str, Callable[[pa.Table], pa.Table]] = {}
_building = threading.Lock()


@dataclass(frozen=True)
class ShardTask:
    """One shard to make: its number, its key, its input files and their rows."""

    index: int
    key: str
    inputs: tuple[Path, ...]
    rows: int


@dataclass(frozen=True)
class FailedShard:
    """A shard that could not be made, and why."""

    task: ShardTask
    reason: str

    def __str__(self) -> str:
        return f"shard {self.task.index} ({', '.join(map(str, self.task.inputs))}): {self.reason}"


def report_rows(rows: int) -> None:
    """Say from inside a shard function that so many of its rows are done, for a display that moves.

    A step that never calls this counts its rows when the shard is done.
    """
    report = _report.get()
    if report is not None:
        report(rows)


def compute_shard(step: Step, task: ShardTask, work: WorkDirectory) -> ShardRecord:
    """Read a shard's input, apply the step's function, and commit the result to the work directory."""
    with _building:
        function = _functions.get(task_family := _family(step))
        if function is None:
            _functions.clear()  # a worker serves one step at a time: free the last step's model
            function = _functions[task_family] = _built(step)
    return work.commit(task.key, function(read_aligned(task.inputs, step.columns)))


def _built(step: Step) -> Callable[[pa.Table], pa.Table]:
    """What makes a step's shards.

    Raises:
        IncompleteError: it cannot begin here. That is no shard's fault, and a worker on which nothing can
            begin must not try, and fail, all of them.
    """
    try:
        return step.build(**step.arguments)
    except (ParaforgeError, OSError, MemoryError):
        raise
    except Exception as error:
        raise IncompleteError(
            f"{step.name} cannot begin on {socket.gethostname()}: {type(error).__name__}: {error}. "
            "What is finished is safe."
        ) from error


def _family(step: Step) -> str:
    return f"{step.description()!r}{step.arguments!r}"


def forget_functions() -> None:
    """Free what the last step had loaded in this process."""
    _functions.clear()


class RowCounter:
    """Counts rows told by the shard function, so that a finished shard adds only what is missing."""

    def __init__(self, add: Callable[[int], None]) -> None:
        self._add = add
        self.told = 0

    def __call__(self, rows: int) -> None:
        self.told += rows
        self._add(rows)

    def finish(self, total: int) -> None:
        if total > self.told:
            self._add(total - self.told)


@contextlib.contextmanager
def counted_rows(add: Callable[[int], None]) -> Iterator[RowCounter]:
    """While the block runs, :func:`report_rows` calls ``add``; the counter knows how much it was told."""
    counter = RowCounter(add)
    token = _report.set(counter)
    try:
        yield counter
    finally:
        _report.reset(token)
