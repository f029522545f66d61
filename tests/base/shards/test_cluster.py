"""Clusters: schedulers that are missing or lost, and TLS certificates."""

import logging
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import dask
import psutil
import pytest
from distributed import CancelledError, Security, Status
from distributed.comm import CommClosedError
from distributed.nanny import WorkerProcess

from paraforge.base.errors import IncompleteError
from paraforge.base.shards import cluster
from paraforge.base.shards.cluster import Workers, connect, outcome, watched_connection, worker_number
from paraforge.base.shards.resources import Resources

ROLES = ("scheduler", "worker", "client")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@pytest.mark.parametrize("kind", [CancelledError, CommClosedError])
def test_lost_scheduler_error_says_what_to_do(kind: type[Exception]) -> None:
    with pytest.raises(IncompleteError, match="Finished work is kept"), watched_connection():
        raise kind("scheduler-connection-lost")


def test_single_process_without_cluster() -> None:
    assert worker_number() == 0


def test_lost_workers_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The run waits up to 15 minutes after it last saw a worker. If it needs a GPU, only workers with a GPU
    count.
    """
    clock = {"now": 0.0}
    monkeypatch.setattr(cluster.time, "monotonic", lambda: clock["now"])
    known = {str(number): {"resources": {}} for number in range(99)} | {"gpu": {"resources": {"GPU": 1}}}
    client = Mock(sync=lambda _: {"workers": known})
    workers, with_gpu = Workers(client), Workers(client, gpu=True)
    for clock["now"] in (0.0, 2000.0, 4000.0):
        assert (workers.tasks_out(), with_gpu.tasks_out()) == (400, 64)
    del known["gpu"]
    for clock["now"] in (4020.0, 4040.0, 4900.0):
        assert (workers.tasks_out(), with_gpu.tasks_out()) == (396, 64)
    clock["now"] = 4920.0
    assert workers.tasks_out() == 396
    with pytest.raises(IncompleteError, match="no usable worker for 15 minutes"):
        with_gpu.tasks_out()
    assert caplog.messages == ["the scheduler has no worker with a GPU; waiting for one"]
    known.clear()
    Workers(client).tasks_out()  # not even a first one
    assert caplog.messages[1:] == ["the scheduler has no worker; waiting for one"]


def test_local_workers_get_configured_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    local = Mock(return_value=nullcontext())
    monkeypatch.setattr(cluster, "_local_cluster", local)
    monkeypatch.setattr("distributed.Client", Mock(return_value=nullcontext()))
    with connect(Resources(memory_limit="3GB"), 5, gpu=True, at_once=2):
        assert dask.config.get("distributed.scheduler.allowed-failures") == 2  # the third is the last
    wanted = {"n_workers": 5, "threads_per_worker": 2, "memory_limit": "3GB", "resources": {"GPU": 2}}
    assert {name: local.call_args.kwargs.get(name) for name in wanted} == wanted


def test_local_cluster_that_fails_to_start_or_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Mock(close=Mock(side_effect=[AssertionError("can only join a started process"), None]))
    monkeypatch.setattr("distributed.LocalCluster", Mock(side_effect=[made, RuntimeError("no memory")]))
    with cluster._local_cluster(n_workers=2) as given:
        assert given is made
    assert made.close.call_count == 2 and made.status is Status.running
    with (
        pytest.raises(IncompleteError, match=r"do not start: no memory.*resources\.workers to 1"),
        cluster._local_cluster(),
    ):
        pass


def test_waits_for_first_worker_and_returns_job_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "_POLL_SECONDS", 0)
    answers = [{}, {}, {}, {"a": {"resources": {}}}]  # the count of workers asks once, too
    client = Mock(sync=lambda _: {"workers": answers.pop(0)})
    assert cluster.wait_for_worker(client) == {"a": {"resources": {}}}
    problem = ValueError("no number")
    assert outcome(Mock(result=Mock(side_effect=problem))) == (None, problem)
    assert outcome(Mock(result=lambda: 7)) == (7, None)
    with pytest.raises(IncompleteError, match="the connection to the scheduler was lost"):
        outcome(Mock(result=Mock(side_effect=CancelledError("lost"))))


@pytest.mark.full
def test_cluster_ends_while_worker_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.full
def test_worker_dying_at_start_is_clear_error() -> None:
    """The code that kills the worker comes from Dask's setting of what a worker runs first."""
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    refused = pytest.raises(IncompleteError, match=r"do not start.*resources\.workers to 1")
    with dask.config.set({"distributed.worker.preload": [dies]}), refused, connect(Resources(), workers=2):
        pass


def certificates(directory: Path) -> dict[str, str]:
    """A certificate authority and a signed certificate, by the commands of docs/scaling.md."""
    directory.mkdir()
    for command in (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=authority -keyout ca.key -out ca.pem",
        "openssl req -x509 -CA ca.pem -CAkey ca.key -newkey rsa:2048 -nodes -days 365 -subj /CN=paraforge "
        "-keyout key.pem -out cert.pem",
    ):
        subprocess.run(command.split(), cwd=directory, check=True, capture_output=True)
    return {name: str(directory / f"{name}.pem") for name in ("ca", "cert", "key")}


@needs_openssl
@pytest.mark.full
def test_tls_certificates_from_dask_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the right certificates the cluster computes; with others, or none, it refuses the connection."""
    from distributed import LocalCluster

    monkeypatch.setattr(cluster, "_CONNECTING", "2s")
    right, other = (certificates(tmp_path / name) for name in ("right", "other"))
    both = {f"tls_{who}_{one}": right[one] for who in ROLES for one in ("cert", "key")}
    security = Security(tls_ca_file=right["ca"], require_encryption=True, **both)
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tls://",
        host="127.0.0.1",
        security=security,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    ) as made:
        resources = Resources(scheduler=made.scheduler_address)
        for paths, works in ((right, True), (other, False), ({}, False)):
            settings = {f"distributed.comm.tls.client.{one}": paths.get(one) for one in ("cert", "key")}
            with dask.config.set({"distributed.comm.tls.ca-file": paths.get("ca"), **settings}):
                if works:
                    with connect(resources, 1) as client:
                        assert client.submit(sum, [1, 2, 3]).result() == 6
                else:
                    refused = pytest.raises(IncompleteError, match="cannot connect to the scheduler tls://")
                    with refused, connect(resources, 1):
                        pass


@pytest.mark.parametrize("address", ["tcp://127.0.0.1", "ucx://127.0.0.1:8786"])
def test_invalid_dask_address(address: str) -> None:
    """The address has no port, or a protocol that is not installed."""
    before = threading.enumerate()
    with (
        pytest.raises(IncompleteError, match=rf"cannot connect to the scheduler {address}: .*such as tcp://"),
        connect(Resources(scheduler=address), 1),
    ):
        pass
    # What is closed later may block the next client.
    assert "IO loop" not in [one.name for one in threading.enumerate() if one not in before]


def test_scheduler_without_tls_warns_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no scheduler")

    monkeypatch.setattr("distributed.Client", refuse)  # whose threads a busy machine starts late
    monkeypatch.setattr(cluster, "_warned", set())
    resources = Resources(scheduler="tcp://127.0.0.1:9")
    for _ in range(2):
        refused = pytest.raises(IncompleteError, match=r"the scheduler tcp://127\.0\.0\.1:9: no scheduler")
        with caplog.at_level(logging.WARNING), refused, connect(resources, 1):
            pass
    warnings = [
        record.getMessage() for record in caplog.records if "can run code as you" in record.getMessage()
    ]
    assert len(warnings) == 1 and "Use tls://" in warnings[0]


@pytest.mark.full
def test_other_users_of_this_host_cannot_use_a_local_cluster() -> None:
    """All its ports are on the loopback address, and none runs code for a client without the certificate."""
    with connect(Resources(), 2) as client:
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        ports = {
            (connection.laddr.ip, connection.laddr.port)
            for process in processes
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        assert len(ports) > 3 and {ip for ip, _ in ports} == {"127.0.0.1"}
        info = client.scheduler_info()
        nannies = [worker["nanny"] for worker in info["workers"].values()]
        for address in [info["address"], *info["workers"], *nannies]:
            assert address.startswith("tls://127.0.0.1:")
            context = Security.temporary().get_connection_args("client")["ssl_context"]
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            port = int(address.rpartition(":")[2])
            with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", port), 5) as plain:
                context.wrap_socket(plain).recv(1)
        assert client.submit(sum, [1, 2]).result() == 3
