"""Schedulers that are not there, or not there any more."""

from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import CancelledError, Status
from distributed.comm import CommClosedError
from distributed.nanny import WorkerProcess

from paraforge.base.errors import IncompleteError
from paraforge.base.shards.cluster import connect, is_numbered, watched_connection, worker_number
from paraforge.base.shards.resources import Resources


@pytest.mark.parametrize("kind", [CancelledError, CommClosedError])
def test_a_scheduler_that_goes_away_is_an_error_that_says_what_to_do(kind: type[Exception]) -> None:
    with pytest.raises(IncompleteError, match="What is finished is safe"), watched_connection():
        raise kind("scheduler-connection-lost")


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def client(address: str, **_: Any) -> Any:
        raise OSError(f"Timed out trying to connect to {address} after 30 s")

    monkeypatch.setattr("distributed.Client", client)
    with (
        pytest.raises(IncompleteError, match="nobody answers at tcp://host:8786"),
        connect(Resources(scheduler="tcp://host:8786"), 2),
    ):
        pass


def test_outside_of_a_cluster_there_is_one_process() -> None:
    assert (worker_number(), is_numbered()) == (0, True)


def test_a_cluster_ends_although_a_worker_is_being_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = WorkerProcess.kill
    refused: list[str] = []

    async def kill(process: Any, *arguments: Any, **options: Any) -> None:
        await ended(process, *arguments, **options)
        if not refused:
            refused.append("once")
            raise AssertionError("can only join a started process")

    monkeypatch.setattr(WorkerProcess, "kill", kill)
    with connect(Resources(), 2) as client:
        assert client.submit(sum, [1, 2]).result() == 3
        cluster = client.cluster
    assert refused and cluster.status is Status.closed and cluster.scheduler.status is Status.closed


# A worker dies while it starts: dask.config says what a worker is to run first.
DIES = """
import os, pathlib, signal
for number in range({times}):
    try:
        (pathlib.Path({place!r}) / str(number)).touch(exist_ok=False)
    except FileExistsError:
        continue
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("times", "starts"), [(1, True), (100, False)])
def test_a_worker_that_dies_while_it_starts_is_started_again_or_a_clear_error(
    tmp_path: Path, times: int, starts: bool
) -> None:
    preload = DIES.format(times=times, place=str(tmp_path))
    with dask.config.set({"distributed.worker.preload": [preload]}):
        if starts:
            with connect(Resources(), workers=2) as client:
                assert client.submit(sum, [1, 2]).result() == 3
        else:
            refused = pytest.raises(IncompleteError, match=r"do not start.*resources\.workers to 1")
            with refused, connect(Resources(), workers=2):
                pass
    assert list(tmp_path.iterdir())
