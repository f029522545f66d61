"""Running shard tasks: in this process, on a local Dask cluster, or on a cluster that is already there."""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from paraforge.errors import Interrupted, ParaforgeError
from paraforge.interrupts import check_interrupt, stop_requested
from paraforge.progress import Progress
from paraforge.shards.cluster import ATTEMPTS, PROGRESS_TOPIC, Workers, connect, watched_connection
from paraforge.shards.resources import Resources
from paraforge.shards.store import ShardRecord
from paraforge.shards.tasks import FailedShard, ShardTask, compute_shard, counted_rows, forget_functions
from paraforge.shards.work import WorkDirectory

if TYPE_CHECKING:
    from paraforge.shards.step import Step

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5

Result = tuple[int, ShardRecord]


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
        forget_functions()


def _computed_here(
    step: Step, task: ShardTask, work: WorkDirectory, add: Callable[[int], None]
) -> Result | FailedShard:
    try:
        with counted_rows(add) as counter:
            record = compute_shard(step, task, work)
    except (ParaforgeError, OSError, MemoryError):
        raise  # the user's to mend: bad input, missing package, full disk
    except Exception as error:
        logger.debug("%s", traceback.format_exc())
        return FailedShard(task, f"{type(error).__name__}: {error}")
    counter.finish(task.rows)
    return task.index, record


def _compute_on_worker(step: Step, task: ShardTask, work: WorkDirectory) -> ShardRecord:
    from distributed import get_worker

    worker = get_worker()
    try:
        with counted_rows(lambda rows: worker.log_event(PROGRESS_TOPIC, rows)) as counter:
            record = compute_shard(step, task, work)
    except ParaforgeError as error:
        if error.ends_process:
            # Dask gives the task to another worker, and the nanny starts one here with a context of its own.
            logger.error("%s: this worker ends", error)
            logging.shutdown()
            os._exit(error.exit_code)
        raise
    counter.finish(task.rows)
    return record


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
        on_hand = Workers(client)
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
