"""Worker processes: what they give, and what becomes of a run when one dies or Ctrl-C reaches them, too."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from paraforge import interrupts
from paraforge.errors import IncompleteError, Interrupted
from paraforge.shards.pool import in_processes

pytestmark = pytest.mark.usefixtures("forked_workers")


def nothing() -> None:
    """What a process begins with."""


def squared_in_spite_of_ctrl_c(number: int) -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return number**2


def dies_at_seven(number: int) -> int:
    if number == 7:
        os._exit(1)
    return number


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
