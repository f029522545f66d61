"""Runs independent jobs in this process, on a local Dask cluster, or on an existing one.

A job is a call of an importable function, such as :func:`paraforge.base.shards.step.compute_shard`.
:func:`open_jobs` chooses where jobs run. :class:`Jobs` runs them, tries again what can be tried again, and
counts their rows for the progress display.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from paraforge import versions
from paraforge.base.errors import IncompleteError, InputError, ParaforgeError, RetryError
from paraforge.base.progress import JobCounter, progress
from paraforge.base.shards.cluster import ATTEMPTS, Workers, connect, outcome, watched_connection
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.transfer import (
    Disk,
    JobFiles,
    announced,
    copied,
    given_back,
    on_shared_disk,
    sending,
)

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")
# Errors that the user must fix (bad input, missing package, full disk). They stop the run.
_USERS = (ParaforgeError, OSError, MemoryError)
_POLL_SECONDS = 0.5
_DIED = (
    f"its worker died {ATTEMPTS} times, perhaps because memory ran out: use fewer workers, or give each more "
    "memory (resources.workers, resources.memory_limit)"
)
# Workers report rows as Dask events with this topic. A scheduler never forgets a topic, so all runs share
# one, and an event also has the number of its run.
_TOPIC = "paraforge-rows"
# The versions of this program and its steps. A worker with others would give other bytes under the same keys.
_VERSIONS = {name: value for name, value in vars(versions).items() if name.isupper() or name == "__version__"}
_report: ContextVar[Callable[[int], None] | None] = ContextVar("report_rows", default=None)


@dataclass(frozen=True)
class Failed:
    """Takes the place of the result of a job that failed. error: what it raised; None if its worker died."""

    reason: str
    error: BaseException | None = None


def report_rows(rows: int) -> None:
    """Report from inside a job how many of its rows are done, for the progress display. The rows of a job
    that never calls this are counted when it is done."""
    report = _report.get()
    if report is not None:
        report(rows)


class Jobs:
    """Runs batches of independent jobs, in this process or on one Dask client that all batches share."""

    def __init__(
        self,
        client: Client | None = None,
        *,
        gpu: bool = False,
        at_once: int = 1,
        disk: Disk | None = None,
    ) -> None:
        """Use ``client``, or this process and ``at_once`` threads.

        gpu: whether a job needs a worker that declares a ``GPU`` resource.
        at_once: jobs that this process works on at the same time.
        disk: how workers find out whether they see this host's disk; None if all of them do.
        """
        self._client = client
        self._gpu = gpu
        self._at_once = at_once
        self._disk = disk

    def run(
        self, function: Callable[..., ResultT], arguments: Sequence[tuple[Any, ...]], **display: Any
    ) -> Iterator[tuple[int, ResultT]]:
        """Run jobs as :meth:`attempt` does, but stop when one fails, with its error; with IncompleteError if
        it killed its workers.

        display: the other arguments of :meth:`attempt`.
        """
        for index, result in self.attempt(function, arguments, **display):
            if isinstance(result, Failed):
                raise result.error or IncompleteError(f"{display['description']} {index}: {result.reason}")
            yield index, result

    def results(
        self, function: Callable[..., ResultT], arguments: Sequence[tuple[Any, ...]], **display: Any
    ) -> list[ResultT]:
        """Return the results of :meth:`run` when all jobs are done, in the order of the arguments."""
        results = dict(self.run(function, arguments, **display))
        return [results[index] for index in range(len(arguments))]

    def attempt(
        self,
        function: Callable[..., ResultT],
        arguments: Sequence[tuple[Any, ...]],
        *,
        description: str,
        unit: str = "parts",
        sizes: Sequence[int] | None = None,
        done: int = 0,
        files: Sequence[JobFiles] | None = None,
    ) -> Iterator[tuple[int, ResultT | Failed]]:
        """Call ``function(*arguments[i])`` for every i, and yield (i, result) as jobs finish, in any order.

        Jobs must be idempotent, because a job whose worker dies is run again on another. A long job can
        report its progress with :func:`report_rows`, in the unit of ``sizes``.

        function: importable top-level function. arguments: one tuple per job.
        description: text of the progress display. unit: what ``sizes`` count.
        sizes: amount of work in each job; 1 by default. If all are 0, it is unknown and the jobs report it.
        done: work that earlier runs have done, for the display.
        files: what each job reads and writes, for workers that do not see this disk. None: such workers get
            no job.

        A job that raises any other error than these is a :class:`Failed`, and the run goes on.

        Raises:
            ParaforgeError, OSError, MemoryError: raised by a job, because the user must do something; the run
                stops.
            IncompleteError: there was no worker for a quarter of an hour.
        """
        amounts = [1] * len(arguments) if sizes is None else list(sizes)
        total = done + sum(amounts)
        with progress(total=total or None, unit=unit, description=description, done=done) as bar:
            counter = JobCounter(amounts, bar)
            if self._client is None:
                yield from self._here(function, arguments, counter)
            else:
                with sending(self._client, self._disk, files):
                    yield from self._on_dask(function, arguments, counter, files)

    def _here(
        self, function: Callable[..., ResultT], arguments: Sequence[tuple[Any, ...]], counter: JobCounter
    ) -> Iterator[tuple[int, ResultT | Failed]]:
        def call(index: int) -> tuple[int, ResultT | Failed]:
            try:
                told, result = _run_job(function, arguments[index], lambda rows: counter.tell(index, rows))
            except _USERS:
                raise
            except Exception as error:
                return index, _failed(error)
            counter.finish(index, told)
            return index, result

        yield from in_order(call, len(arguments), self._at_once)

    def _on_dask(
        self,
        function: Callable[..., ResultT],
        arguments: Sequence[tuple[Any, ...]],
        counter: JobCounter,
        files: Sequence[JobFiles] | None,
    ) -> Iterator[tuple[int, ResultT | Failed]]:
        client = self._client
        assert client is not None
        run = uuid.uuid4().hex
        sent = _SentJobs(client, self._gpu, len(arguments))

        def submit(index: int) -> Any:
            return client.submit(
                _call_on_worker,
                _VERSIONS,
                function,
                arguments[index],
                (run, index),
                self._disk,
                None if files is None else files[index],
                priority=-index,
                resources={"GPU": 1} if self._gpu else None,
                pure=False,
            )

        def told(event: tuple[float, tuple[str, int, int]]) -> None:
            whose, index, rows = event[1]
            if whose == run:
                counter.tell(index, rows)

        client.subscribe_topic(_TOPIC, told)
        try:
            for index, result in sent.results(submit):
                if isinstance(result, Failed):
                    yield index, result
                    continue
                rows, value, contents = result
                if contents is not None:
                    assert files is not None
                    files[index].commit(contents)
                counter.finish(index, rows)
                yield index, value
        finally:
            # If the connection is lost, there is nothing to cancel.
            with contextlib.suppress(Exception):
                sent.cancel()
                client.unsubscribe_topic(_TOPIC)


class _SentJobs:
    """Submits the jobs of a run to a cluster, a few per worker at a time, and again if they may be tried
    again.

    So the scheduler need not hold a million of them, we need not search them all when one is done, and few
    are blamed when a worker dies. Dask blames every job that a dying worker held. So each suspect is run
    alone at the end, and only one that kills its workers again has failed.
    """

    def __init__(self, client: Client, gpu: bool, count: int) -> None:
        self._client = client
        self._workers = Workers(client, gpu)
        # By number: jobs that are not submitted yet, submitted ones (by their futures), and suspects.
        self._waiting = deque(range(count))
        self._pending: dict[Any, int] = {}
        self._suspects: list[int] = []
        self._tries: Counter[int] = Counter()

    def results(self, submit: Callable[[int], Any]) -> Iterator[tuple[int, Any]]:
        """Yield each job's number, and what it returned or a :class:`Failed`. Raises the errors of
        :meth:`Jobs.attempt`.

        submit: submits a job and returns its future.
        """
        while self._waiting or self._pending or self._suspects:
            for future in self._next_done(submit):
                index = self._pending.pop(future)
                result, error = outcome(future)
                self._tries[index] += 1
                if error is not None:
                    result = self._failure(index, error)
                if result is not None:
                    yield index, result
                future.release()

    def cancel(self) -> None:
        """Cancel the submitted jobs that have not ended."""
        if self._pending:
            self._client.cancel(list(self._pending), force=True)

    def _next_done(self, submit: Callable[[int], Any]) -> Iterable[Any]:
        """Submit jobs, and wait for at most half a second. Returns the futures of jobs that have ended."""
        from distributed import TimeoutError as DaskTimeoutError
        from distributed import wait

        with watched_connection(), self._client.as_current():
            most = self._workers.tasks_out()
            while self._waiting and len(self._pending) < most:
                index = self._waiting.popleft()
                self._pending[submit(index)] = index
            if not self._pending:
                index = self._suspects.pop()
                self._pending[submit(index)] = index
            try:
                return wait(list(self._pending), timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED").done
            except (DaskTimeoutError, TimeoutError):
                return ()

    def _failure(self, index: int, error: Exception) -> Failed | None:
        """Return why a job failed; None if it will be tried again. Raises errors that stop the run."""
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            if self._tries[index] > 1:
                return Failed(_DIED)
            self._suspects.append(index)
            return None
        if isinstance(error, RetryError):
            if self._tries[index] >= ATTEMPTS:
                return _failed(error)
            logger.warning("%s; the job is tried again", error)
            self._waiting.append(index)
            return None
        if isinstance(error, _USERS):
            for host in {*getattr(error, "__notes__", [])} - {socket.gethostname()}:
                logger.error("the next error is that of a worker on %s", host)
            raise error
        return _failed(error)


def _run_job(
    function: Callable[..., ResultT], arguments: tuple[Any, ...], tell: Callable[[int], None]
) -> tuple[int, ResultT]:
    """Run a job. Returns the rows that it reported, and its result.

    tell: called with all rows that the job has reported so far, whenever it reports more.
    """
    told = 0

    def add(rows: int) -> None:
        nonlocal told
        told += rows
        tell(told)

    token = _report.set(add)
    try:
        result = function(*arguments)
    finally:
        _report.reset(token)
    return told, result


def _call_on_worker(
    versions: dict[str, Any],
    function: Callable[..., ResultT],
    arguments: tuple[Any, ...],
    name: tuple[str, int],
    disk: Disk | None,
    files: JobFiles | None,
) -> tuple[int, ResultT, list[bytes | None] | None]:
    """Run a job on a worker.

    versions: the submitting host's :data:`_VERSIONS`. name: numbers of the run and of the job.
    disk, files: see :class:`Jobs` and :meth:`Jobs.attempt`.

    Returns the rows that the job reported, its result, and, if this worker does not see the disk, the content
    of the files that it wrote.

    Raises:
        InputError: this worker has other versions.
        RetryError: this worker cannot do the job now; another one may.
    """
    from distributed import get_worker

    worker = get_worker()
    if versions != _VERSIONS:
        raise InputError(
            f"the worker at {worker.address} has another version of paraforge than this host",
            remedy="Install the same version on all hosts, and start workers and command again.",
        )

    def tell(rows: int) -> None:
        worker.log_event(_TOPIC, (*name, rows))

    try:
        if disk is None or disk.is_seen():
            return *_run_job(function, arguments, tell), None
        if files is None:
            raise given_back(f"{worker.address} does not see {disk.project}")
        with copied(disk, files, name[1], worker.address, worker.log_event) as copies:
            return *_run_job(function, copies.placed(arguments), tell), copies.left()
    except _USERS as error:
        if isinstance(error, ParaforgeError) and error.ends_process:
            # Dask gives the job to another worker, and the nanny starts a new one here.
            logger.error("%s: this worker ends", error)
            logging.shutdown()
            os._exit(error.exit_code)
        # Perhaps only this host lacks the package or has a full disk.
        error.add_note(socket.gethostname())
        raise


def _failed(error: Exception) -> Failed:
    logger.debug("a job failed:", exc_info=error)
    return Failed(f"{type(error).__name__}: {error}", error)


@contextlib.contextmanager
def open_jobs(
    resources: Resources,
    rows: int,
    *,
    jobs: int | None = None,
    workers: int | None = None,
    gpu: bool = False,
    at_once: int = 1,
    travels: bool = False,
) -> Iterator[Jobs]:
    """Provide a place to run jobs over ``rows`` rows: this process if they are few, otherwise the scheduler
    of ``resources``, or a local Dask cluster for the block.

    rows: the sum over all jobs.
    jobs: the number of jobs if known, so that no more workers are started.
    workers: number of processes; by default ``resources.workers`` divided by ``at_once``.
    gpu: see :class:`Jobs`. at_once: jobs that a process works on at the same time, in threads.
    travels: whether all jobs name their files, so that workers need not see this disk. Otherwise, if a worker
        of the scheduler does not see it, the work is done on this host.
    """
    if not (travels or on_shared_disk(resources)):
        resources = resources.model_copy(update={"scheduler": None})
    if workers is None:
        at_once = min(at_once, resources.worker_count())
        workers = -(-resources.worker_count() // at_once)
    few = workers == 1 or jobs == 1 or rows <= resources.in_process_rows
    if resources.scheduler is None and few:
        yield Jobs(at_once=at_once)
        return
    with (
        announced(resources) as disk,
        connect(resources, workers if jobs is None else min(workers, jobs), gpu, at_once) as client,
    ):
        yield Jobs(client, gpu=gpu, disk=disk)
