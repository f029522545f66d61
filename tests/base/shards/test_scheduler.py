"""Jobs give the same results in this process, on a local cluster and on a running one; lost workers and
Ctrl-C."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import dask
import psutil
import pytest
from distributed import Client, KilledWorker, LocalCluster, get_worker

from paraforge import versions
from paraforge.base.errors import IncompleteError, InputError, RetryError
from paraforge.base.shards import scheduler
from paraforge.base.shards.pool import in_processes
from paraforge.base.shards.resources import LEAST_JOB_MEMORY, MOST_JOB_MEMORY, Resources, job_memory
from paraforge.base.shards.scheduler import Failed, Jobs, open_jobs, report_rows

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
from tests.base.shards.test_scheduler import nothing, says_where_it_is
from paraforge.base.shards.pool import in_processes

list(in_processes(says_where_it_is, [sys.argv[1]] * 9, nothing, (), 2))
"""


def square(number: int) -> int:
    return number * number


def fail(number: int) -> int:
    if number == 3:
        raise InputError("the third is wrong")
    return number


def die_once(mark: str) -> str:
    if not Path(mark).exists():
        die(mark)
    return "done"


def die(mark: str) -> int:
    with Path(mark).open("a") as file:
        file.write("x")
    # A nanny replaces no worker that dies before it has heard that the worker has started.
    time.sleep(1)
    os._exit(1)


def stop_once(mark: str) -> int:
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return os.getpid()
    os.kill(os.getpid(), signal.SIGSTOP)
    return 0


ARGUMENTS = [(number,) for number in range(8)]
SQUARES = {number: number * number for number in range(8)}


def test_in_process() -> None:
    with open_jobs(Resources(workers=2, in_process_rows=10), rows=10) as jobs:
        assert jobs._client is None
        assert dict(jobs.run(square, ARGUMENTS, description="test")) == SQUARES
        assert dict(jobs.run(square, [], description="test")) == {}


meeting = threading.Barrier(2)


def meet(number: int) -> int:
    meeting.wait(60)
    return number


def thread_of(_: int) -> int:
    return threading.get_ident()


def test_workers_share_as_few_processes_as_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    two = Resources(workers=2, in_process_rows=0)
    with open_jobs(two, 100, at_once=2) as jobs:  # one process, which is this one
        assert jobs.results(meet, [(1,), (2,), (3,), (4,)], description="meet") == [1, 2, 3, 4]
    with open_jobs(two.model_copy(update={"workers": 1}), 100, at_once=2) as jobs:
        assert set(jobs.results(thread_of, [(1,), (2,)], description="one")) == {threading.get_ident()}
    started: list[tuple[int, int]] = []

    @contextmanager
    def connect(_: Resources, workers: int, gpu: bool, at_once: int) -> Iterator[None]:
        started.append((workers, at_once))
        yield None

    monkeypatch.setattr(scheduler, "connect", connect)
    for workers, at_once, jobs_known in [(2, 1, None), (3, 2, None), (4, 2, None), (8, 2, 3), (8, 2, 1)]:
        resources = two.model_copy(update={"workers": workers})
        with open_jobs(resources, 100, at_once=at_once, jobs=jobs_known):
            pass
    with open_jobs(two, 100, at_once=2, workers=2):  # as many processes as are asked for
        pass
    assert started == [(2, 1), (2, 2), (2, 2), (3, 2), (2, 2)]


def test_jobs_know_their_worker_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("announced", "connect"):
        monkeypatch.setattr(scheduler, name, lambda *_, name=name: nullcontext(name))
    with open_jobs(Resources(workers=2, in_process_rows=0), 100, gpu=True) as jobs:
        assert (jobs._client, jobs._disk, jobs._gpu) == ("connect", "announced", True)
    # A scheduler whose workers do not see this disk gets only what travels.
    monkeypatch.setattr(scheduler, "on_shared_disk", lambda _: False)
    elsewhere = Resources(workers=1, scheduler="tcp://there:8786")
    for travels, client in ((False, None), (True, "connect")):
        with open_jobs(elsewhere, 100, travels=travels) as jobs:
            assert jobs._client == client


def test_errors_of_jobs_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="third"):
        dict(Jobs().run(fail, ARGUMENTS, description="test"))
    with pytest.raises(TypeError, match="can't multiply"):
        dict(Jobs().run(square, [("no number",)], description="test"))
    monkeypatch.setattr(Jobs, "attempt", lambda *_, **__: [(0, Failed("its worker died"))])
    with pytest.raises(IncompleteError, match="test 0: its worker died"):
        Jobs().results(square, [(1,)], description="test")


def test_log_names_place_of_failed_job(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, scheduler.__name__), threads_of_a_cluster() as client:
        for jobs in (Jobs(), Jobs(client)):
            ((_, found),) = jobs.attempt(square, [("no number",)], description="test")
            assert "can't multiply" in str(found)
    logged = [str(record.exc_text) for record in caplog.records if record.name == scheduler.__name__]
    assert len(logged) == 2 and all("in square" in text for text in logged)


@pytest.mark.parametrize(
    ("limit", "memory"), [("1GB", 500_000_000), ("64MB", LEAST_JOB_MEMORY), ("100GB", MOST_JOB_MEMORY)]
)
def test_memory_of_a_job(limit: str, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert job_memory(Resources(workers=1, memory_limit=limit)) == memory
    assert LEAST_JOB_MEMORY <= job_memory(Resources(workers=1)) <= MOST_JOB_MEMORY
    monkeypatch.setattr("paraforge.base.shards.resources.available_memory", lambda: 2 << 30)
    assert job_memory(Resources(workers=4)) == 256 << 20  # half of a worker's share


@pytest.mark.full
def test_on_a_local_cluster(tmp_path: Path) -> None:
    resources = Resources(workers=2, in_process_rows=0, memory_limit="1GB")
    with open_jobs(resources, rows=10) as jobs:
        assert jobs._client is not None
        with pytest.raises(InputError, match="third"):
            dict(jobs.run(fail, ARGUMENTS, description="test"))
        # A job whose worker dies is done by another; one that kills three is given up.
        assert dict(jobs.run(die_once, [(str(tmp_path / "mark"),)], description="test")) == {0: "done"}
        with pytest.raises(IncompleteError, match="died 3 times"):
            dict(jobs.run(die, [(str(tmp_path / "died"),)], description="test"))
        # Three times among others, and three times alone.
        assert len((tmp_path / "died").read_text()) == 2 * 3


@contextmanager
def threads_of_a_cluster() -> Iterator[Client]:
    """A client of a cluster in this process."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def try_in_vain(mark: str, times: int, problem: Exception) -> str:
    with Path(mark).open("a") as file:
        file.write("x")
    if len(Path(mark).read_text()) <= times:
        raise problem
    return "done"


_RETRY = (RetryError("not yet"), "RetryError: not yet")
# Dask's error for a job whose worker has died three times.
_KILLED = (KilledWorker("job", SimpleNamespace(address="a worker"), 2), "its worker died 3 times")


@pytest.mark.parametrize(
    ("failures", "tries", "problem"),
    [(0, 1, _RETRY), (2, 3, _RETRY), (9, 3, _RETRY), (1, 2, _KILLED), (9, 2, _KILLED)],
)
def test_retryable_job_is_retried(
    tmp_path: Path, failures: int, tries: int, problem: tuple[Exception, str]
) -> None:
    """A job is tried three times, or twice if another job may have killed its workers."""
    with threads_of_a_cluster() as client:
        given = [(str(tmp_path / "mark"), failures, problem[0])]
        ((_, found),) = Jobs(client).attempt(try_in_vain, given, description="test")
    assert len((tmp_path / "mark").read_text()) == tries
    assert found == "done" if failures < tries else problem[1] in str(found)


def test_worker_with_other_versions_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker has another version of the program, or fails with an error that only its host has."""
    older = {**scheduler._VERSIONS, "SCORE": versions.SCORE - 1}
    with threads_of_a_cluster() as client:
        with pytest.raises(InputError, match=r"inproc.* has another version"):
            client.submit(scheduler._call_on_worker, older, square, (2,), ("run", 0), None, None).result()
        for hosts, words in ((["a", "b"], ["the next error is that of a worker on a"]), (["a", "a"], [])):
            monkeypatch.setattr(scheduler, "socket", Mock(gethostname=Mock(side_effect=hosts)))
            caplog.clear()
            with caplog.at_level(logging.ERROR, scheduler.__name__), pytest.raises(InputError, match="third"):
                Jobs(client).results(fail, [(3,)], description="test")
            assert [record.message for record in caplog.records if record.name == scheduler.__name__] == words


@pytest.mark.full
def test_silent_worker_loses_its_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.base.shards.cluster._SILENT_SECONDS", 1)
    resources = Resources(workers=2, in_process_rows=0, memory_limit="1GB")
    arguments = [(str(tmp_path / "mark"),)] * 6
    with open_jobs(resources, rows=10) as jobs:
        found = dict(jobs.run(stop_once, arguments, description="test"))
    assert set(found) == set(range(6)) and all(found.values())


@pytest.mark.full
def test_workers_started_by_dask_itself(capfd: pytest.CaptureFixture[str]) -> None:
    """The error is returned, and no worker prints a traceback."""
    method = dask.config.set({"distributed.worker.multiprocessing-method": "spawn"})
    with method, open_jobs(Resources(workers=2, in_process_rows=0), rows=10) as jobs:
        assert dict(jobs.run(square, ARGUMENTS, description="test")) == SQUARES
        with pytest.raises(InputError, match="third"):
            jobs.results(fail, ARGUMENTS, description="test")
    assert capfd.readouterr().err == ""


heard = threading.Event()


def tell_of_another_run(rows: int) -> int:
    get_worker().log_event(scheduler._TOPIC, ("another run", 0, 2 * rows))
    report_rows(2)
    report_rows(1)
    assert heard.wait(60)
    return rows


def test_progress_counts_only_rows_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    def tell(_: object, index: int, rows: int) -> None:
        told.append((index, rows))
        if rows == 3:
            heard.set()

    monkeypatch.setattr(scheduler.JobCounter, "tell", tell)
    with threads_of_a_cluster() as client:
        jobs = Jobs(client).run(tell_of_another_run, [(7,)], description="test", sizes=[7])
        assert dict(jobs) == {0: 7}
    assert told == [(0, 2), (0, 3), (0, 7)]


passed_on = threading.Event()


def wait_for_the_first(number: int) -> bool:
    return number == 0 or passed_on.wait(20)


def test_result_is_passed_on_while_others_run() -> None:
    results = {}
    with threads_of_a_cluster() as client:
        for index, result in Jobs(client).run(wait_for_the_first, [(0,), (1,)], description="test"):
            results[index] = result
            passed_on.set()
    assert results == {0: True, 1: True}


@pytest.mark.full
def test_second_cluster_on_host_does_not_warn() -> None:
    resources = Resources(workers=2, in_process_rows=0)
    with warnings.catch_warnings(record=True) as caught, open_jobs(resources, 10), open_jobs(resources, 10):
        pass
    assert [str(one.message) for one in caught if "8787" in str(one.message)] == []


def nothing() -> None:
    """What a process begins with."""


def squared_in_spite_of_ctrl_c(number: int) -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return number**2


def dies_at_seven(number: int) -> int:
    if number == 7:
        os._exit(1)
    return number


def says_where_it_is(directory: str) -> None:
    (Path(directory) / str(os.getpid())).touch()
    time.sleep(600)


def run(work: Callable[[int], int]) -> list[int]:
    return list(in_processes(work, range(20), nothing, (), 2))


@pytest.mark.full
def test_workers_ignore_ctrl_c() -> None:
    assert run(squared_in_spite_of_ctrl_c) == [number**2 for number in range(20)]


@pytest.mark.full
def test_dead_worker_is_one_log_line() -> None:
    with pytest.raises(IncompleteError, match=r"a worker process died.*--workers"):
        run(dies_at_seven)


@pytest.mark.full
def test_workers_end_with_killed_parent(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT) as parent:
        while len(list(tmp_path.iterdir())) < 2:
            assert parent.poll() is None
            time.sleep(0.1)
        parent.kill()
    workers = [int(path.name) for path in tmp_path.iterdir()]
    end = time.monotonic() + 60
    while any(map(is_running, workers)):
        assert time.monotonic() < end
        time.sleep(0.1)


def is_running(process: int) -> bool:
    """Return whether a process runs, even if its parent has not noticed its end yet."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
