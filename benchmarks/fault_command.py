"""Runs a stage of the small project, perhaps with a fault, and sends it signals."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.fault_projects import stages
from benchmarks.faulty_process import FAULT
from tests.project import project_environment


@dataclass
class Command:
    """A running stage in its own process group, and its output."""

    project: Path
    words: Path
    process: subprocess.Popen[bytes] = field(init=False)
    started: float = field(init=False)
    started_processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, stage: str, order: Mapping[str, Any] | None) -> Command:
        """Start the stage, with a fault or without."""
        environment = project_environment(self.project)
        # Workers of Dask are forked from a process that has imported Dask.
        environment["DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD"] = "forkserver"
        environment |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        if order is not None:
            environment[FAULT] = json.dumps(order)
        (self.project / ".stage").unlink(missing_ok=True)
        self.started = time.monotonic()
        with self.words.open("wb") as said:
            self.process = subprocess.Popen(
                ["python", "-m", "sitecustomize", *stages()[stage].command],
                cwd=self.project,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        self.started_processes.append(self.process)
        return self

    def pid(self) -> int | None:
        """Return the process that runs the stage, once there is one."""
        try:
            return int((self.project / ".stage").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def send(self, number: int, who: str, dice: random.Random) -> bool:
        """Send a signal to the group, the parent or a child. Returns whether there was one."""
        pid = self.pid()
        if pid is None:
            return False
        try:
            if who == "group":
                os.killpg(self.process.pid, number)
                return True
            if who == "worker":
                children = sorted(child.pid for child in psutil.Process(pid).children(recursive=True))
                if not children:
                    return False
                pid = dice.choice(children)
            os.kill(pid, number)
            return True
        except (OSError, psutil.Error):
            return False

    def said(self) -> str:
        """Return all output."""
        return self.words.read_text(encoding="utf-8", errors="replace")

    def is_unclear(self) -> bool:
        """Return whether the output is empty, or only understandable to developers."""
        return "Traceback" in self.said() or not self.said().strip()

    def end(self) -> None:
        """Kill the remaining processes, including children of earlier starts."""
        for process in self.started_processes:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
