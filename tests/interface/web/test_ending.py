"""A page is ended by a signal, with exit code 0, however late the watcher of signals gets its turn."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading, time
from paraforge.base import interrupts

read = os.read
def late(*arguments):
    found = read(*arguments)
    time.sleep(1.0)
    return found
interrupts.os.read = late
interrupts.end_on_signals()
with interrupts.last_words():
    from flask import Flask
    from paraforge.interface.web.serving import serve_app
    def announce(address):
        threading.Timer(0.2, os.kill, (os.getpid(), getattr(signal, sys.argv[1]))).start()
    serve_app(lambda policy: Flask("page"), "127.0.0.1", 0, announce=announce)
    time.sleep(1.5)  # what a busy machine takes to end
"""


@pytest.mark.parametrize("name", [pytest.param("SIGTERM", marks=pytest.mark.full), "SIGINT"])
def test_a_late_watcher_changes_nothing(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "interrupted" not in done.stderr
