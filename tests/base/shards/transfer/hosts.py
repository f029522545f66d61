"""Hosts that share nothing but a network: processes in network and mount namespaces of their own.

A host's place is an empty disk of its own in memory; the head is the host that has the project.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ADDRESS = "tcp://10.77.0.1:8786"
# Without a sign of life for so long, a worker is given up.
SILENCE_SECONDS = 5
PATIENCE_SECONDS = 10.0
"""As :data:`~paraforge.base.shards.transfer.PATIENCE_SECONDS`, of head and workers."""
_WORKER = f"""
from distributed.cli.dask_worker import main
from paraforge.base.shards import transfer
transfer.PATIENCE_SECONDS = {PATIENCE_SECONDS}
main()
"""
# Mounts an empty disk over a place, and becomes a program.
_BECOME = """
import os, subprocess, sys
place, *program = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "host", place], check=True)
os.chdir(place)
os.execv(program[0], program)
"""


@cache
def why_not() -> str:
    """Return why namespaces cannot be made here; empty if they can."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "no ip (iproute2) or unshare (util-linux)"
    name = f"pf{uuid.uuid4().hex[:8]}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode:
        return f"no network namespaces: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return mounts_missing()


@cache
def mounts_missing() -> str:
    """Return why a process cannot have its own mounts here; empty if it can."""
    if shutil.which("unshare") is None:
        return "no unshare (util-linux)"
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    tried = subprocess.run(command, capture_output=True, text=True)
    return f"no mount namespaces: {tried.stderr.strip()}" if tried.returncode else ""


needs_namespaces = pytest.mark.skipif(bool(why_not()), reason=why_not())


class Hosts:
    """A network with a scheduler, to which hosts are added; all of it goes when the block ends.

    place: what every host has a disk of its own for. logs: what the processes said, by host.
    """

    def __init__(self, place: Path, logs: Path) -> None:
        self.place = place
        self.logs = logs
        self._hub = f"pf{uuid.uuid4().hex[:8]}"
        self._spaces: list[str] = []
        self._numbers: dict[str, int] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Hosts:
        self.place.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        self._space(self._hub)
        self._hub_ip("link", "set", "lo", "up")
        self._hub_ip("link", "add", "bridge", "type", "bridge")
        self._hub_ip("addr", "add", "10.77.0.1/24", "dev", "bridge")
        self._hub_ip("link", "set", "bridge", "up")
        ttl = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{SILENCE_SECONDS}s"}
        program = ["-m", "distributed.cli.dask_scheduler", "--host", ADDRESS, "--no-dashboard"]
        self._start("scheduler", self._hub, [sys.executable, *program], ttl)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], check=False)

    def _space(self, name: str) -> None:
        subprocess.run(["ip", "netns", "add", name], check=True)
        self._spaces.append(name)

    def _hub_ip(self, *command: str) -> None:
        subprocess.run(["ip", "-n", self._hub, *command], check=True)

    def _start(self, name: str, space: str, program: list[str], extra: dict[str, str] | None = None) -> None:
        # ip and unshare become the program, so that the process here is the one that is killed.
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                ["ip", "netns", "exec", space, *program],
                env={**os.environ, **(extra or {})},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def said(self, name: str) -> str:
        return self.log(name).read_text(errors="replace")

    def head(self, *program: str) -> subprocess.Popen[bytes]:
        """Start a Python program on the host with the project, next to the scheduler."""
        self._start("head", self._hub, [sys.executable, *program])
        return self.processes["head"]

    def add(self, name: str) -> None:
        """Add a host with a worker of one thread."""
        number = len(self._numbers) + 2
        self._numbers[name] = number
        space = f"{self._hub}-{number}"
        self._space(space)
        port = f"port{number}"
        self._hub_ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        self._hub_ip("link", "set", port, "master", "bridge", "up")
        for command in (f"addr add 10.77.0.{number}/24 dev eth0", "link set eth0 up", "link set lo up"):
            subprocess.run(["ip", "-n", space, *command.split()], check=True)
        worker = ["-c", _WORKER, ADDRESS, "--nthreads", "1", "--no-nanny"]
        worker += ["--no-dashboard", "--local-directory", str(self.place / "dask"), "--memory-limit", "0"]
        become = [sys.executable, "-c", _BECOME, str(self.place), sys.executable, *worker]
        space = f"{self._hub}-{self._numbers[name]}"
        cache = {"XDG_CACHE_HOME": str(self.place / "cache")}
        self._start(name, space, ["unshare", "--mount", *become], cache)

    def link(self, name: str, state: str) -> None:
        """Drop all packets to and from a host (``down``), or stop dropping them (``up``)."""
        self._hub_ip("link", "set", f"port{self._numbers[name]}", state)

    def files(self, name: str) -> list[Path]:
        """Return the files on a host's own disk."""
        root = Path(f"/proc/{self.processes[name].pid}/root")
        return [path.relative_to(root) for path in (root / self.place.relative_to("/")).rglob("*")]


def waited(done: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait until ``done()`` is true. Raises TimeoutError after the limit."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)
