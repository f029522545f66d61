"""Connects to a Dask cluster or starts a local one, counts its workers, and tells a process which of them it
is."""

from __future__ import annotations

import contextlib
import gc
import logging
import math
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from paraforge.base.errors import IncompleteError, first_line, page
from paraforge.base.shards.resources import Resources, available_cores

if TYPE_CHECKING:
    from distributed import Client, Future

logger = logging.getLogger(__name__)

# A shard that kills its worker this often fails; the others continue.
ATTEMPTS = 3
# Jobs that are submitted at a time: so many per worker, but at least the first number in total.
_FEWEST_TASKS = 64
_TASKS_PER_WORKER = 4
_SECONDS_BETWEEN_COUNTS = 10.0
# Seconds that a run waits for its first worker, or for another if all are gone.
_PATIENCE_SECONDS = 900.0
_POLL_SECONDS = 1.0
# A local worker without a sign of life for this long is ended, and others do its tasks.
_SILENT_SECONDS = 600
_CONNECTING = "30s"
# What Dask's workers log. Their errors come back as results, and about a lost scheduler they log pages.
_LOGGED = {"distributed": "error", "distributed.worker": "critical"}
# Schedulers without TLS that have been warned about.
_warned: set[str] = set()


def _worker() -> Any:
    """Return the cluster worker that this process is, or None."""
    if "distributed" in sys.modules:
        from distributed import get_worker

        with contextlib.suppress(ValueError):
            return get_worker()
    return None


def worker_number() -> int | None:
    """Return this process' number among the workers of its cluster, from 0; a local cluster's workers have it
    as their name. 0 if it is no worker; None if its name is not a number, as in most other clusters."""
    name = str(getattr(_worker(), "name", 0))
    return int(name) if name.isdecimal() else None


def worker_threads() -> int:
    """Return the threads that this worker was started with; the number of cores if this is no worker."""
    worker = _worker()
    return available_cores() if worker is None else int(worker.state.nthreads)


def has_gpu_workers(resources: Resources) -> bool:
    """Return whether a worker of the cluster in ``resources`` declares a ``GPU``; waits a while for a first
    worker. Raises IncompleteError if the scheduler does not answer, or no worker appears."""
    with connect(resources, 0) as client, watched_connection():
        known = list(wait_for_worker(client).values())
    gpu_workers = sum(bool(worker["resources"].get("GPU")) for worker in known)
    threads = sum(worker["nthreads"] for worker in known)
    logger.info("%d workers with %d threads answer, %d of them with a GPU", len(known), threads, gpu_workers)
    if not gpu_workers:
        logger.info(
            "no worker declares a GPU ('dask worker --resources GPU=1'), so the engine runs on the "
            "workers' CPUs"
        )
    return gpu_workers > 0


def wait_for_worker(client: Client) -> dict[str, Any]:
    """Return a scheduler's information on its workers, by address, once there is one. Raises IncompleteError
    if none appears."""
    workers = Workers(client)
    while not (known := client.sync(client.scheduler.identity)["workers"]):
        workers.tasks_out()
        time.sleep(_POLL_SECONDS)
    return dict(known)


@contextlib.contextmanager
def watched_connection() -> Iterator[None]:
    """Turn the loss of the scheduler into a readable error while the block runs. Raises IncompleteError if it
    is gone."""
    from distributed import CancelledError
    from distributed.comm import CommClosedError

    try:
        yield
    except (CancelledError, CommClosedError) as error:
        raise IncompleteError(
            "the connection to the scheduler was lost. Finished work is kept: start the cluster, and "
            "run the same command again."
        ) from error


def outcome(future: Future) -> tuple[Any, Exception | None]:
    """Return a finished job's result and None, or None and the error that it raised. Raises IncompleteError
    if the scheduler is gone.

    Asking first whether the job raised would not be enough: if the worker is lost before its result arrives,
    the job runs again elsewhere and can raise then.
    """
    from distributed import CancelledError
    from distributed.comm import CommClosedError

    with watched_connection():
        try:
            return future.result(), None
        except (CancelledError, CommClosedError):
            raise
        except Exception as error:
            return None, error


@contextlib.contextmanager
def connect(resources: Resources, workers: int, gpu: bool = False, at_once: int = 1) -> Iterator[Client]:
    """Provide a Dask client for the scheduler in ``resources``, or without one for a local cluster that lives
    as long as the block.

    workers, gpu, at_once: the processes of the local cluster, whether they declare a ``GPU``, and the threads
        of each.
    """
    import dask
    from distributed import Client, Security

    if resources.scheduler is not None:
        if not resources.scheduler.startswith(("tls://", "wss://")) and resources.scheduler not in _warned:
            _warned.add(resources.scheduler)
            logger.warning(
                "%s has no TLS: anyone who can connect to it can run code as you. Use tls:// unless you "
                "trust everyone on that network (see %s)",
                resources.scheduler,
                page("scaling"),
            )
        try:
            client = Client(resources.scheduler, timeout=_CONNECTING, set_as_default=False)
        except (OSError, ImportError, RuntimeError, TypeError, ValueError) as error:
            client, problem = None, first_line(error)
        if client is None:
            # A client that could not connect is closed when it is collected. If that happens while another
            # starts, both wait for one lock forever.
            gc.collect()
            raise IncompleteError(
                f"cannot connect to the scheduler {resources.scheduler}: {problem}. Set "
                "resources.scheduler to the address that 'dask scheduler' prints, such as "
                f"tcp://10.0.0.1:8786, or null. For tls://, set the certificates in "
                f"Dask's settings (see {page('scaling')})"
            )
        with client:
            yield client
        return
    options: dict[str, Any] = {
        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
        # Limits the time between heartbeats, not the time of a task, which has another thread.
        "distributed.scheduler.worker-ttl": f"{_SILENT_SECONDS} s",
        "distributed.worker.daemon": True,
        "distributed.admin.large-graph-warning-threshold": "1GB",
        # Workers import Dask before they get its settings.
        "distributed.nanny.pre-spawn-environ.DASK_DISTRIBUTED__LOGGING": str(_LOGGED),
        # Dask makes glibc release memory at once, so arrays of a few megabytes are mapped and zeroed page by
        # page each time, and scoring takes 1.5 times the processor time.
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 256 << 20,
        "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
    }
    with (
        dask.config.set(options),
        _local_cluster(
            n_workers=workers,
            threads_per_worker=at_once,
            processes=True,
            memory_limit=resources.memory_limit,
            # Dask runs any code that a client sends. Other users of this host cannot connect without a
            # certificate that only these processes have.
            protocol="tls://",
            host="127.0.0.1",
            security=Security.temporary(),
            dashboard_address=None,
            resources={"GPU": at_once} if gpu else None,
            silence_logs=logging.ERROR,
            # No dashboard, only the scheduler's metrics, at any free HTTP port.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextlib.contextmanager
def _local_cluster(**options: Any) -> Iterator[Any]:
    from distributed import LocalCluster, Status

    try:
        cluster = LocalCluster(**options)
    except RuntimeError as error:  # Dask closes the whole cluster for one worker
        raise IncompleteError(
            f"the local workers do not start: {first_line(error.__cause__ or error)}. Finished work "
            "is kept: free some memory, or set resources.workers to 1, and run the same command again."
        ) from error
    try:
        yield cluster
    finally:
        try:
            cluster.close()
        except AssertionError:
            # Dask cannot close a worker that has just died and is being restarted. By now it has given up on
            # that one, so a second call closes the others and the scheduler.
            cluster.status = Status.running
            cluster.close()


class Workers:
    """Counts the workers from time to time, and waits for a first one."""

    def __init__(self, client: Client, gpu: bool = False) -> None:
        """``gpu``: whether only workers that declare a ``GPU`` resource count."""
        self._client = client
        self._gpu = gpu
        self._asked = -math.inf
        self._number = 0
        self._last_seen = time.monotonic()

    def tasks_out(self) -> int:
        """Return how many jobs should be submitted and not done: enough for all workers, including new ones.
        Raises IncompleteError if there was no usable worker for a quarter of an hour."""
        now = time.monotonic()
        if now - self._asked > _SECONDS_BETWEEN_COUNTS:
            is_news = self._number or self._asked == -math.inf
            known = self._client.sync(self._client.scheduler.identity)["workers"].values()
            self._number = sum(not self._gpu or bool(worker["resources"].get("GPU")) for worker in known)
            self._asked = now
            if self._number:
                self._last_seen = now
            elif is_news:
                kind = "worker with a GPU" if self._gpu else "worker"
                logger.warning("the scheduler has no %s; waiting for one", kind)
            elif now - self._last_seen > _PATIENCE_SECONDS:
                raise IncompleteError(
                    f"no usable worker for {_PATIENCE_SECONDS / 60:.0f} minutes. Finished work is "
                    "kept: start workers and run the same command again."
                )
        return max(_FEWEST_TASKS, _TASKS_PER_WORKER * self._number)
