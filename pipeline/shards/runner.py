"""Running shard tasks: in this process, on a local Dask cluster, or on a cluster that is already there."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline.configuration.resources import Resources
from pipeline.errors import IncompleteError, Interrupted, ParaforgeError
from pipeline.interrupts import check_interrupt, stop_requested
from pipeline.progress import Progress
from pipeline.shards.store import ShardRecord, read_aligned
from pipeline.shards.work import WorkDirectory

if TYPE_CHECKING:
    from distributed import Client

    from pipeline.shards.step import Step

logger = logging.getLogger(__name__)

# A shard that kills its worker this often is given up; the rest goes on.
ATTEMPTS = 3
PROGRESS_TOPIC = "paraforge-rows"
_POLL_SECONDS = 0.5
# Tasks that the scheduler holds, in all and a worker.
_LEAST_OUT = 64
_OUT_A_WORKER = 4
_SECONDS_BETWEEN_COUNTS = 10.0
# So long a run waits for a first worker, or for another when all have gone, before it stops.
_PATIENCE_SECONDS = 900.0


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


Result = tuple[int, ShardRecord]

_report: ContextVar[Callable[[int], None] | None] = ContextVar("report_rows", default=None)
_functions: dict[str, Callable[[pa.Table], pa.Table]] = {}
_building = threading.Lock()


def report_rows(rows: int) -> None:
    """Say from inside a shard function that so many of its rows are done, for a display that moves.

    A step that never calls this counts its rows when the shard is done.
    """
    report = _report.get()
    if report is not None:
        report(rows)


def worker_number() -> int:
    """Number of this process among the workers of a local cluster; 0 in process.

    Workers of other clusters are 0 too unless their names are numbers: each of them sees its own devices.
    """
    name = _worker_name()
    return int(name) if name.isdecimal() else 0


def is_numbered() -> bool:
    """Whether :func:`worker_number` tells this process from others beside it, or there are none."""
    return _worker_name().isdecimal()


def _worker_name() -> str:
    if "distributed" not in sys.modules:
        return "0"
    from distributed import get_worker

    try:
        return str(get_worker().name)
    except ValueError:
        return "0"


def run_tasks(
    step: Step,
    tasks: Sequence[ShardTask],
    work: WorkDirectory,
    resources: Resources,
    workers: int | None,
    bar: Progress,
) -> Iterator[Result | FailedShard]:
    """Make the shards, in any order; yields what was written or what failed.

    Raises:
        ParaforgeError: an error that the user has to mend (bad input, missing package); the run stops.
        Interrupted: SIGTERM or Ctrl-C.
    """
    if not tasks:
        return
    count = workers if workers is not None else resources.worker_count()
    rows = sum(task.rows for task in tasks)
    if resources.scheduler is None and (count == 1 or len(tasks) == 1 or rows <= resources.in_process_rows):
        yield from _in_process(step, tasks, work, bar)
    else:
        yield from _on_dask(step, tasks, work, resources, min(count, len(tasks)), bar)


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


class _Counter:
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
def counted_rows(add: Callable[[int], None]) -> Iterator[_Counter]:
    """While the block runs, :func:`report_rows` calls ``add``; the counter knows how much it was told."""
    counter = _Counter(add)
    token = _report.set(counter)
    try:
        yield counter
    finally:
        _report.reset(token)


def _in_process(
    step: Step, tasks: Sequence[ShardTask], work: WorkDirectory, bar: Progress
) -> Iterator[Result | FailedShard]:
    pool = ThreadPoolExecutor(step.at_once, "shards") if step.at_once > 1 else None
    lock = threading.Lock()

    def add(rows: int) -> None:
        with lock:
            bar.update(rows)

    try:
        if pool is None:
            for task in tasks:
                check_interrupt()
                yield _computed_here(step, task, work, add)
            return
        running: deque[Future[Result | FailedShard]] = deque()
        for task in tasks:
            check_interrupt()
            running.append(pool.submit(_computed_here, step, task, work, add))
            if len(running) > step.at_once:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
        _functions.clear()


def _computed_here(
    step: Step, task: ShardTask, work: WorkDirectory, add: Callable[[int], None]
) -> Result | FailedShard:
    counter = _Counter(add)
    token = _report.set(counter)
    try:
        record = compute_shard(step, task, work)
    except (ParaforgeError, OSError, MemoryError):
        raise  # the user's to mend: bad input, missing package, full disk
    except Exception as error:
        logger.debug("%s", traceback.format_exc())
        return FailedShard(task, f"{type(error).__name__}: {error}")
    finally:
        _report.reset(token)
    counter.finish(task.rows)
    return task.index, record


def _compute_on_worker(step: Step, task: ShardTask, work: WorkDirectory) -> ShardRecord:
    from distributed import get_worker

    worker = get_worker()
    counter = _Counter(lambda rows: worker.log_event(PROGRESS_TOPIC, rows))
    token = _report.set(counter)
    try:
        record = compute_shard(step, task, work)
    except ParaforgeError as error:
        if error.ends_process:
            # Dask gives the task to another worker, and the nanny starts one here with a context of its own.
            logger.error("%s: this worker ends", error)
            logging.shutdown()
            os._exit(error.exit_code)
        raise
    finally:
        _report.reset(token)
    counter.finish(task.rows)
    return record


@contextlib.contextmanager
def watched_connection() -> Iterator[None]:
    """While the block runs, a scheduler that goes away is an error that a user can read.

    Raises:
        IncompleteError: it has gone.
    """
    from distributed import CancelledError
    from distributed.comm import CommClosedError

    try:
        yield
    except (CancelledError, CommClosedError) as error:
        raise IncompleteError(
            "the connection to the scheduler was lost. What is finished is safe: start the cluster, and run "
            "the same command again."
        ) from error


@contextlib.contextmanager
def connect(resources: Resources, workers: int, gpu: bool = False, at_once: int = 1) -> Iterator[Client]:
    """A Dask client: of the scheduler that ``resources`` names, or of a local cluster made for the block."""
    import dask
    from distributed import Client, LocalCluster

    if resources.scheduler is not None:
        try:
            client = Client(resources.scheduler, timeout="30s")
        except OSError as error:
            raise IncompleteError(
                f"nobody answers at {resources.scheduler}: start one, or set resources.scheduler to null"
            ) from error
        with client:
            yield client
        return
    options: dict[str, Any] = {
        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
        "distributed.worker.daemon": True,
        "distributed.admin.large-graph-warning-threshold": "1GB",
        "distributed.logging.distributed": "error",
        # Dask has glibc give memory back at once, so that arrays of a few megabytes are mapped and zeroed
        # page by page each time: scoring then takes half as much processor time again.
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 256 << 20,
        "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
    }
    with (
        dask.config.set(options),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=at_once,
            processes=True,
            memory_limit=resources.memory_limit,
            dashboard_address=None,
            resources={"GPU": at_once} if gpu else None,
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


class _Workers:
    """The workers that are there, counted now and then."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked = -math.inf
        self._number = 0
        self._last_seen = time.monotonic()

    def tasks_out(self) -> int:
        """How many tasks the scheduler is to hold: enough for all workers, also for those that join.

        Raises:
            IncompleteError: no worker has been there for a quarter of an hour.
        """
        now = time.monotonic()
        if now - self._asked > _SECONDS_BETWEEN_COUNTS:
            before, self._number = self._number, len(self._client.nthreads())
            self._asked = now
            if self._number:
                self._last_seen = now
            elif before:
                logger.warning("all workers have gone; waiting for others")
            elif now - self._last_seen > _PATIENCE_SECONDS:
                raise IncompleteError(
                    f"no worker has been there for {now - self._last_seen:,.0f} seconds. "
                    "What is finished is safe: start workers and run the same command again."
                )
        return max(_LEAST_OUT, _OUT_A_WORKER * self._number)


def _on_dask(
    step: Step,
    tasks: Sequence[ShardTask],
    work: WorkDirectory,
    resources: Resources,
    workers: int,
    bar: Progress,
) -> Iterator[Result | FailedShard]:
    from distributed import KilledWorker, wait
    from distributed import TimeoutError as DaskTimeoutError

    gpu = step.device.startswith("cuda")
    # Workers on other hosts need a path that means the same there.
    work = WorkDirectory(work.step, work.path.parent.resolve())
    with connect(resources, workers, gpu, step.at_once) as client:
        client.subscribe_topic(PROGRESS_TOPIC, lambda event: bar.update(event[1]))

        def submit(task: ShardTask, suffix: str = "") -> Any:
            return client.submit(
                _compute_on_worker,
                step,
                ShardTask(task.index, task.key, tuple(path.resolve() for path in task.inputs), task.rows),
                work,
                key=f"{step.name}-{task.key}{suffix}",
                resources={"GPU": 1} if gpu else None,
                pure=False,
            )

        # A few tasks a worker are out at a time: the scheduler need not hold a million, nor need we look
        # through them whenever one is done, and a worker that dies has few to be blamed for.
        waiting = iter(tasks)
        futures: dict[Any, ShardTask] = {}
        pending: set[Any] = set()
        suspects: list[ShardTask] = []
        alone: set[int] = set()
        exhausted = False
        on_hand = _Workers(client)
        try:
            while True:
                with watched_connection():
                    out = on_hand.tasks_out()
                while not exhausted and len(pending) < out:
                    next_task = next(waiting, None)
                    if next_task is None:
                        exhausted = True
                        break
                    future = submit(next_task)
                    futures[future] = next_task
                    pending.add(future)
                if not pending and not suspects:
                    break
                if stop_requested():
                    raise Interrupted()
                if not pending:
                    # Dask blames every shard that a dying worker held. Alone, only the guilty one is there.
                    task = suspects.pop()
                    alone.add(task.index)
                    future = submit(task, "-alone")
                    futures[future] = task
                    pending = {future}
                try:
                    with watched_connection():
                        finished = wait(pending, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED").done
                except (DaskTimeoutError, TimeoutError):
                    continue
                for future in finished:
                    pending.discard(future)
                    task = futures.pop(future)
                    with watched_connection():
                        error = future.exception()
                    if error is None:
                        yield task.index, future.result()
                    elif isinstance(error, KilledWorker) and task.index not in alone:
                        suspects.append(task)
                    elif isinstance(error, KilledWorker):
                        yield FailedShard(task, f"its worker died {ATTEMPTS} times")
                    elif isinstance(error, (ParaforgeError, OSError, MemoryError)):
                        raise error
                    else:
                        yield FailedShard(task, f"{type(error).__name__}: {error}")
                    future.release()
        finally:
            if pending:
                client.cancel(list(pending), force=True)
            client.unsubscribe_topic(PROGRESS_TOPIC)
