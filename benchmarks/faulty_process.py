"""Injects a fault at the n-th file operation of a process: a kill, a signal, a full disk.

:mod:`benchmarks.faults` copies this file into a project as sitecustomize.py, so that every Python process
of a stage reads it, and starts the stage by it: ``python -m sitecustomize MODULE``. It needs nothing but
Python. What is to happen is in the variable PARAFORGE_FAULT; without it nothing does.
"""

import atexit
import errno
import json
import os
import resource
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

FAULT, MAIN = "PARAFORGE_FAULT", "PARAFORGE_FAULT_MAIN"
# Audit events that name a file, and which of their arguments do.
OPERATIONS = {
    "open": (0,),
    "os.mkdir": (0,),
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.link": (0, 1),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.listdir": (0,),
    "os.scandir": (0,),
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# Of the project, but none of the stage's business.
OTHERS = {"configs", "pipeline", "logs", ".dvc", "__pycache__", "sitecustomize.py"}
FULL_BYTES = 4096  # what still fits into a file that is already open


class Fault:
    """A fault that waits for its moment.

    Attributes:
        project: the directory whose files count.
        wanted: see :func:`benchmarks.faults.ordered`.
    """

    def __init__(self, wanted: dict[str, Any]) -> None:
        self.wanted = wanted
        self.project = Path(wanted["project"])
        self.count = 0
        self.begun = False
        self.seen: list[str] = []
        self.busy = threading.local()

    def watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Handle an audit event; an error raised here becomes that of the operation."""
        places = OPERATIONS.get(event)
        if places is None or getattr(self.busy, "now", False):
            return
        inside = [name for name in (self._inside(arguments[place]) for place in places) if name is not None]
        if not inside:
            return
        self.busy.now = True
        try:
            writes = event not in ("os.listdir", "os.scandir")
            if event == "open":
                writes = bool((arguments[2] or 0) & WRITING)
            self._count(event + (" to write" if writes and event == "open" else ""))
            if self.begun and writes:
                self._refuse(inside)
        finally:
            self.busy.now = False

    def _inside(self, path: Any) -> str | None:
        """Return a path in the project, or None for other or irrelevant paths."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None
        name = os.fsdecode(path)
        if name.startswith(os.sep):
            if not name.startswith(f"{self.project}{os.sep}"):
                return None
            name = name[len(str(self.project)) + 1 :]
        first = name.partition(os.sep)[0]
        return None if first in OTHERS or name.endswith((".py", ".pyc")) else name

    def _count(self, operation: str) -> None:
        is_main = os.environ.get(MAIN) == str(os.getpid())
        if is_main and self.wanted.get("trace"):
            self.seen.append(operation)
        if self.begun or is_main == (self.wanted["role"] == "worker"):
            return
        self.count += 1
        if self.count == self.wanted["at"]:
            self._begin()

    def _begin(self) -> None:
        try:  # in one process only
            os.close(os.open(self.wanted["fired"], os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
        self.begun = True
        kind = self.wanted["kind"]
        if kind in ("kill", "stop", "signal"):
            number = self.wanted["signal"]
            os.killpg(0, number) if self.wanted["group"] else os.kill(os.getpid(), number)
        elif kind == "full":
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)  # what libraries write by themselves
            resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
        elif kind == "source":
            path = self.project / self.wanted["path"]
            path.write_bytes(self.wanted["content"].encode("utf-8"))

    def _refuse(self, names: list[str]) -> None:
        if self.wanted["kind"] == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), names[-1])
        if self.wanted["kind"] == "readonly":
            directory = self.wanted["directory"]
            for name in names:
                if directory == "." or name == directory or name.startswith(f"{directory}/"):
                    raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)


def break_engine(how: str, first: int) -> None:
    """Make the engine ``fake`` fail from its n-th batch on: lost, memory, wrong or timeout."""
    from paraforge.translation.engines.fake import FakeTranslator

    decode = FakeTranslator._decode
    batches = 0

    def failing(self: Any, batch: Any) -> Any:
        nonlocal batches
        batches += 1
        if batches < first or (how == "memory" and len(batch) < 2):
            return decode(self, batch)
        if how == "wrong":
            return decode(self, batch)[1:]
        if how == "timeout":
            raise TimeoutError("timed out")
        raise RuntimeError(
            "CUDA failed with error " + ("out of memory" if how == "memory" else "unspecified launch failure")
        )

    FakeTranslator._decode = failing  # type: ignore[method-assign]  # this patch is the fault


def install() -> None:
    """Install the fault from the environment, in this process and its children."""
    wanted = json.loads(os.environ[FAULT])
    if wanted["kind"] == "engine":
        break_engine(wanted["how"], wanted["at"])
        return
    fault = Fault(wanted)
    sys.addaudithook(fault.watch)
    if wanted.get("trace") and os.environ.get(MAIN) == str(os.getpid()):
        atexit.register(lambda: Path(wanted["trace"]).write_text(json.dumps(fault.seen), encoding="utf-8"))


if __name__ == "__main__":
    stage, *rest = sys.argv[1:]
    sys.argv = ["-m", *rest]
    os.environ[MAIN] = str(os.getpid())
    Path(".stage").write_text(str(os.getpid()), encoding="utf-8")
    if FAULT in os.environ:
        install()
    runpy.run_module(stage, run_name="__main__", alter_sys=True)
elif FAULT in os.environ and MAIN in os.environ:
    install()
