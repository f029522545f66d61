"""Code 130 comes with the word, whichever of the main thread and the watcher of signals is the faster."""

from __future__ import annotations

import itertools
import subprocess
import sys

PROGRAM = """
import hashlib, os, signal, sys, threading, time
from paraforge import interrupts

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


CASES = list(itertools.product(("write", "read"), ("SIGTERM", "SIGINT"), ("begun", "importing")))


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
