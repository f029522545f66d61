"""Imported by every Python process of a stage under test: counts what is renamed in its project, and kills
all of its processes before a chosen rename. The program is what users run, and the signal is a real one."""

import os
import signal
import sys
from pathlib import Path

_COUNT = os.environ.get("COUNT_RENAMES_IN")
_ALLOWED = int(os.environ.get("KILL_AFTER_RENAMES", str(1 << 30)))


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event != "os.rename" or not Path(os.fsdecode(arguments[1])).absolute().is_relative_to(_PROJECT):
        return
    file = os.open(_COUNT, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b".")
    renames = os.fstat(file).st_size
    os.close(file)
    if renames > _ALLOWED:
        os.killpg(os.getpgrp(), signal.SIGKILL)


if _COUNT:
    _PROJECT = Path(_COUNT).absolute().parent
    sys.addaudithook(_watch)
