"""Worker processes: what they give, and what becomes of a run when one dies or Ctrl-C reaches them, too."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from paraforge.base import interrupts
from paraforge.base.errors import IncompleteError, Interrupted
from paraforge.base.shards.pool import in_processes

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
from tests.base.shards.test_pool import nothing, says_where_it_is
from paraforge.base.shards.pool import in_processes

list(in_processes(says_where_it_is, [sys.argv[1]] * 9, nothing, (), 2))
"""


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


def test_ctrl_c_is_left_to_the_parent() -> None:
    assert run(squared_in_spite_of_ctrl_c) == [number**2 for number in range(20)]


def test_a_process_that_dies_is_one_line() -> None:
    with pytest.raises(IncompleteError, match=r"a worker process died.*--workers"):
        run(dies_at_seven)


def test_a_process_that_dies_of_an_interrupt_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    stop.set()
    monkeypatch.setattr(interrupts, "_stop", stop)
    with pytest.raises(Interrupted):
        run(dies_at_seven)


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
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
    """Whether a process exists that has not ended, which a new parent may not have noticed yet."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
