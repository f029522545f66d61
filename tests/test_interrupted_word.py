"""Code 130 comes with the word, whichever of the main thread and the watcher of signals is the faster."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("begun", ["begun", "importing"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("slow", ["write", "read"])
def test_the_word_is_said_once(slow: str, name: str, begun: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, slow, name, begun],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
