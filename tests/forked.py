"""Training processes forked from the one that starts them: to import torch and fairseq takes longer than the
trainings of the tests. tests/nmt/test_training.py starts them in the usual way."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from paraforge.nmt import processes
from paraforge.nmt.training_process import main


class Forked:
    """What `paraforge.nmt.processes` asks of a `subprocess.Popen`."""

    def __init__(self, command: list[str], **options: Any) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _train(Path(command[-2]), int(command[-1]), writing, **options)
        os.close(writing)
        self.stdout = os.fdopen(reading, encoding="utf-8")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        begun = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() > begun + timeout:
                raise subprocess.TimeoutExpired("training", timeout)
            time.sleep(0.005)
        return code

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _train(directory: Path, rank: int, writing: int, *, env: dict[str, str], **options: Any) -> None:
    """Become a training process."""
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for number, file in enumerate((null, writing if rank == 0 else null, options["stderr"].fileno())):
            os.dup2(file, number)
        os.close(writing)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, "rww"[number]) for number in range(3))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        logging.getLogger().handlers.clear()
        os.environ.clear()
        os.environ.update(env)
        os.chdir(options["cwd"])
        torch.set_num_threads(1)
        torch.set_num_threads = lambda threads: None  # those of OpenMP do not survive a fork
        code = main(directory, rank)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def fork_trainings() -> None:
    """From now on trainings are forked, where there is no GPU, which a forked process cannot use."""
    if not Path("/dev/nvidiactl").exists():
        found = SimpleNamespace(**{**vars(subprocess), "Popen": Forked})
        processes.subprocess = found  # type: ignore[assignment]
