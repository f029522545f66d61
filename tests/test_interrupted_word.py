"""Code 130 comes with the word, whichever of the main thread and the watcher of signals is the faster."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import hashlib, os, signal, sys, threading, time
from paraforge.base import interrupts

slow, name, begun = sys.argv[1:]
called = getattr(os, slow)
def late(*arguments):
    if slow == "write":
        time.sleep(1.5)
        return called(*arguments)
    found = called(*arguments)
    time.sleep(1.5)
    return found
setattr(interrupts.os, slow, late)
interrupts.end_on_signals()
def wait():
    threading.Timer(0.1, os.kill, (os.getpid(), getattr(signal, name))).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)  # meanwhile only the watcher can act
    for _ in range(100):
        time.sleep(0.1)
if begun == "begun":
    with interrupts.last_words():
        wait()
wait()
"""


CASES = [("write", "SIGTERM", "begun"), ("read", "SIGINT", "importing")]


@pytest.mark.full
def test_the_word_is_said_once() -> None:
    """All at the same time, as they sleep most of it."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *case], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for case in CASES
    ]
    found = {}
    for case, process in zip(CASES, processes, strict=True):
        found[case] = (*process.communicate(), process.returncode)
    assert found == dict.fromkeys(CASES, ("", "interrupted\n", 130))


ENDING = """
import atexit, os, sys, threading, time
from paraforge.base import interrupts

def reach(place, wanted=sys.argv[1], write=os.write, sleep=time.sleep):
    if place == wanted:
        write(1, b"here\\n")
        for _ in range(300):
            sleep(0.01)

class Last:
    def __del__(self, reach=reach):
        reach("taken down")

interrupts.end_on_signals()
atexit.register(reach, "exit functions")
with interrupts.last_words():
    last = Last()
reach("after the block")
threading.Thread(target=reach, args=("threads",)).start()
"""


@pytest.mark.full
@pytest.mark.parametrize(("place", "number"), [("threads", signal.SIGTERM), ("taken down", signal.SIGINT)])
def test_after_the_last_words_a_signal_is_code_130_or_comes_too_late(place: str, number: int) -> None:
    """At no time is the program killed by it, which would make a failure of what is finished."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDING, place], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(number)
    _, words = process.communicate()
    late = place == "taken down"
    assert (process.returncode, words) == ((0, "") if late else (130, "interrupted\n"))


CHILDREN = """
from paraforge.base.interrupts import end_on_signals, last_words
end_on_signals()
import multiprocessing, time

def work(ready):
    ready.set()
    time.sleep(60)

if __name__ == "__main__":
    with last_words():
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        context.Process(target=work, args=(ready,), daemon=True).start()
        ready.wait()
        print("ready", flush=True)
        time.sleep(60)
"""


def test_ctrl_c_in_a_terminal_is_said_once(tmp_path: Path) -> None:
    """A terminal sends it to the workers, too, whose main module is the program's."""
    (tmp_path / "program.py").write_text(CHILDREN)
    command = [sys.executable, str(tmp_path / "program.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        _, words = process.communicate(timeout=60)
    assert (process.returncode, words) == (130, "interrupted\n")
