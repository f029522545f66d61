"""Training processes forked from the one that starts them: to import torch and fairseq takes longer than the
trainings of the tests. tests/translation/training/test_training_process.py starts them in the usual way."""

import contextlib
import importlib
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

from paraforge.translation.models.fairseq_compat import import_fairseq
from paraforge.translation.training import processes
from paraforge.translation.training.training_process import main


class Forked:
    """What `paraforge.translation.training.processes` asks of a `subprocess.Popen`."""

    def __init__(self, command: list[str], **options: Any) -> None:
        directory, rank = Path(command[-2]), int(command[-1])
        reading, writing = os.pipe()
        # A signal waits until the child handles it as a training does: the handlers here are not its own.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
        self.pid = os.fork()
        if self.pid == 0:
            _train(directory, rank, writing, mask, **options)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
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


def _train(
    directory: Path,
    rank: int,
    writing: int,
    mask: set[signal.Signals],
    *,
    env: dict[str, str],
    **options: Any,
) -> NoReturn:
    """Become a training process."""
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for number, file in enumerate((null, writing if rank == 0 else null, options["stderr"].fileno())):
            os.dup2(file, number)
        # In a program that is started nothing else stays open, which would keep a pipe or a lock.
        for number in [int(path.name) for path in Path("/dev/fd").iterdir()]:
            if number > 2 and number != null:
                os.dup2(null, number, inheritable=False)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, "rww"[number]) for number in range(3))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
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
        # Whatever goes wrong, a second process must not continue with the tests.
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def fork_trainings() -> None:
    """From now on trainings are forked, where there is no GPU, which a forked process cannot use."""
    import_fairseq()
    for name in ("fairseq.trainer", "torch._dynamo"):  # the latter by the first optimiser
        importlib.import_module(name)
    if not Path("/dev/nvidiactl").exists():
        found = SimpleNamespace(**{**vars(subprocess), "Popen": Forked})
        processes.subprocess = found  # type: ignore[assignment]
