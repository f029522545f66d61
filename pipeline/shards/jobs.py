"""Running independent jobs that are not shards of a step, such as counting a block of words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from paraforge.errors import IncompleteError, Interrupted
from paraforge.interrupts import check_interrupt, stop_requested
from paraforge.progress import Progress, progress
from paraforge.shards.cluster import ATTEMPTS, PROGRESS_TOPIC, connect, watched_connection
from paraforge.shards.resources import Resources
from paraforge.shards.tasks import counted_rows

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")
_POLL_SECONDS = 0.2


class Jobs:
    """Runs batches of jobs in this process, or on one Dask client that all batches share."""

    def __init__(self, client: Client | None = None) -> None:
        self._client = client

    @property
    def distributed(self) -> bool:
        """Whether jobs run in other processes: then their arguments and results have to be picklable."""
        return self._client is not None

    def run(
        self,
        function: Callable[..., ResultT],
        arguments: Sequence[tuple[Any, ...]],
        *,
        description: str,
        unit: str = "jobs",
        sizes: Sequence[int] | None = None,
    ) -> Iterator[tuple[int, ResultT]]:
        """Call ``function(*arguments[i])`` for every i; yields (i, result) as they get done, in any order.

        Jobs have to be idempotent: one whose worker dies is run again on another. A long job may tell how far
        it is with :func:`paraforge.shards.tasks.report_rows`, in the unit of ``sizes``.

        Args:
            function: importable top-level function.
            arguments: one tuple a job.
            description: what the progress display says.
            unit: what ``sizes`` count.
            sizes: how much work each job is; one each by default. All 0: not known, the jobs tell.

        Raises:
            IncompleteError: a job killed its worker three times.
            Interrupted: SIGTERM or Ctrl-C.
        """
        amounts = [1] * len(arguments) if sizes is None else list(sizes)
        with progress(total=sum(amounts) or None, unit=unit, description=description) as bar:
            run = self._here if self._client is None else self._on_dask
            for index, (told, result) in run(function, arguments, bar):
                bar.update(max(amounts[index] - told, 0))
                yield index, result

    def _here(
        self, function: Callable[..., ResultT], arguments: Sequence[tuple[Any, ...]], bar: Progress
    ) -> Iterator[tuple[int, tuple[int, ResultT]]]:
        for index, given in enumerate(arguments):
            check_interrupt()
            with counted_rows(bar.update) as counter:
                result = function(*given)
            yield index, (counter.told, result)

    def _on_dask(
        self, function: Callable[..., ResultT], arguments: Sequence[tuple[Any, ...]], bar: Progress
    ) -> Iterator[tuple[int, tuple[int, ResultT]]]:
        from distributed import KilledWorker, wait
        from distributed import TimeoutError as DaskTimeoutError

        client = self._client
        assert client is not None
        futures = {
            client.submit(_call_on_worker, function, given, pure=False, priority=-index): index
            for index, given in enumerate(arguments)
        }
        pending = set(futures)
        client.subscribe_topic(PROGRESS_TOPIC, lambda event: bar.update(event[1]))
        try:
            while pending:
                if stop_requested():
                    raise Interrupted()
                try:
                    with watched_connection():
                        finished = wait(pending, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED").done
                except (DaskTimeoutError, TimeoutError):
                    continue
                for future in finished:
                    pending.discard(future)
                    with watched_connection():
                        error = future.exception()
                    if isinstance(error, KilledWorker):
                        raise IncompleteError(
                            f"{function.__name__} {futures[future]}: its worker died {ATTEMPTS} times"
                        )
                    if error is not None:
                        raise error
                    yield futures[future], future.result()
                    future.release()
        finally:
            if pending:
                client.cancel(list(pending), force=True)
            client.unsubscribe_topic(PROGRESS_TOPIC)


def _call_on_worker(function: Callable[..., ResultT], given: tuple[Any, ...]) -> tuple[int, ResultT]:
    from distributed import get_worker

    worker = get_worker()
    with counted_rows(lambda rows: worker.log_event(PROGRESS_TOPIC, rows)) as counter:
        result = function(*given)
    return counter.told, result


@contextmanager
def open_jobs(resources: Resources, rows: int) -> Iterator[Jobs]:
    """Jobs for work over ``rows`` rows: in this process where they are few, otherwise on Dask."""
    workers = resources.worker_count()
    if resources.scheduler is None and (workers == 1 or rows <= resources.in_process_rows):
        yield Jobs()
        return
    with connect(resources, workers) as client:
        yield Jobs(client)


MOST_JOB_MEMORY = 1 << 30
LEAST_JOB_MEMORY = 64 << 20


def job_memory(resources: Resources) -> int:
    """Bytes that a job may take for its own tables: half of what a worker has, and 1 GiB at most."""
    import psutil

    if resources.memory_limit == "auto":
        worker = psutil.virtual_memory().total // resources.worker_count()
    else:
        from dask.utils import parse_bytes

        worker = parse_bytes(resources.memory_limit)
    return max(LEAST_JOB_MEMORY, min(MOST_JOB_MEMORY, worker // 2))
