"""Programs forked from a process that has imported what they need: that takes longer than most of them run.

Each is a process of its own, in its starter's process group, with the arguments, directory, environment and
files that it was started with. tests/test_signals.py starts every command and every stage in the usual way.
"""

import atexit
import contextlib
import gc
import importlib
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

from filelock import FileLock

REAL_FSYNC = "PARAFORGE_TESTS_FSYNC"
"""Environment variable with which a program writes to the disk as it does outside of the tests."""
SCRIPTS = Path(sys.executable).parent
PROGRAMS = ("paraforge.interface.cli", "paraforge.stages")
# What commands and stages import only when it is needed.
HEAVY = ("configobj", "ctranslate2", "distributed", "duckdb", "dvc.cachemgr", "dvc.cli.parser",
         "dvc.data_cloud", "dvc.dirs", "dvc.lock", "dvc.repo.artifacts", "dvc.repo.datasets",
         "dvc.repo.graph", "dvc.repo.index", "dvc.repo.metrics", "dvc.repo.open_repo", "dvc.repo.plots",
         "dvc.repo.reproduce", "dvc.repo.stage", "dvc.rwlock", "dvc.scm", "dvc.utils.strictyaml",
         "dvc_data.hashfile.status", "hydra", "networkx", "numba", "pyarrow.acero", "pyarrow.dataset",
         "pytest", "ruamel.yaml", "sacrebleu.metrics", "sacremoses", "safetensors.torch", "scipy.stats",
         "sentencepiece", "torch._dynamo")  # fmt: skip
# Sends its arguments, directory, environment and standard files, and ends with the code that comes back. It
# imports next to nothing. A signal to the group is the program's business. The first lines are as pip writes
# them: the path of Python may be long, or have a space.
CLIENT = """#!/bin/sh
'''exec' "{python}" -IS "$0" "$@"
' '''
import os, sys, time, _signal, _socket
name, arguments = {name!r}, sys.argv[1:]
def start_itself():
    path = {python!r} if name == "python" else {scripts!r} + "/" + name
    os.execv(path, [path, *arguments])
if name == "python" and arguments[:1] not in (["-c"], ["-m"]):
    start_itself()
for number in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, _signal.SIG_IGN)
server = _socket.socket(_socket.AF_UNIX)
try:
    server.connect({address!r})
except OSError:  # it has ended, and says so when the tests do
    for number in (_signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, _signal.SIG_DFL)
    start_itself()
files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
words = [name, os.getcwd(), str(os.getpgrp()), str(len(arguments)), *arguments]
words += [f"{{key}}={{value}}" for key, value in os.environ.items()]
message = b"\\0".join(map(os.fsencode, words))
server.sendmsg([b"%9d" % len(message)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
server.sendall(message)
number = int(server.recv(10) or sys.exit("killed"))
server.sendall(b"begin")
code = server.recv(1)
if code:
    sys.exit(code[0])
try:  # it was killed: so is this, once nobody finds it any more
    while True:
        os.kill(number, 0)
        time.sleep(0.001)
except OSError:
    os.kill(os.getpid(), _signal.SIGKILL)
"""


@cache
def programs() -> Path:
    """A directory to put first on PATH, with `paraforge`, `dvc` and a `python` for `-m` and `-c`.

    All processes of a run of the tests have one; the process that the programs are forked from ends with the
    last of them, or with the one that has started it.
    """
    place = Path(tempfile.gettempdir()) / f"warm-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    user = socket.socket(socket.AF_UNIX)
    with FileLock(f"{place}.lock"):
        try:
            user.connect(str(place / "users"))
        except OSError:
            shutil.rmtree(place, ignore_errors=True)  # of a process that was killed
            _start(place)
            user.connect(str(place / "users"))
    atexit.register(user.close)  # a reference to it, which keeps it open until then
    os.register_at_fork(after_in_child=user.close)  # who is forked may live longer
    return place


def _start(place: Path) -> None:
    place.mkdir()
    for name in ("paraforge", "dvc", "python"):
        path = place / name
        path.write_text(
            CLIENT.format(
                python=sys.executable, scripts=str(SCRIPTS), name=name, address=str(place / "socket")
            )
        )
        path.chmod(0o755)
    process = subprocess.Popen([sys.executable, __file__, str(place)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(_wait_for, process)


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    process.communicate()
    if process.returncode:
        print(
            f"{__file__}: the process ended with {process.returncode}; programs started without it",
            file=sys.stderr,
        )


def serve(place: Path) -> None:
    """Import, and fork a process for every program that is asked for, until nobody uses this any more."""
    gc.disable()
    for name in (*HEAVY, *_library()):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    sys.path.insert(0, str(Path(__file__).parents[1]))
    importlib.import_module("tests.used_once")
    with contextlib.suppress(ImportError):  # fairseq is not installed
        importlib.import_module("tests.forked").fork_trainings()
    sys.path.pop(0)
    fsync, os.fsync = os.fsync, lambda fd: None  # as in tests/conftest.py
    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGCHLD, _reap)
    listener, users = _listener(place / "socket"), _listener(place / "users")
    os.write(1, b"ready\n")
    using = [users.accept()[0]]
    while using or not _left(place, users):
        for ready in select.select([listener, users, *using], [], [])[0]:
            if ready is users:
                using.append(users.accept()[0])
            elif ready is not listener:  # it has ended
                using.remove(ready)
                ready.close()
            else:
                connection, _ = listener.accept()
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for one in (listener, users, *using):
                        one.close()
                    _run(connection, fsync)
                connection.close()
    os._exit(0)


def _left(place: Path, users: socket.socket) -> bool:
    """Remove the programs, unless somebody has come since the last user went."""
    with FileLock(f"{place}.lock"):
        if select.select([users], [], [], 0)[0]:
            return False
        shutil.rmtree(place)
        Path(f"{place}.lock").unlink(missing_ok=True)
    return True


def _listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(64)
    return listener


def _library() -> list[str]:
    """The package's modules but those of the command line and of stages, whose import begins a program."""
    import paraforge

    root = Path(paraforge.__path__[0])  # pkgutil.walk_packages would import the packages of the programs, too
    files = [path.relative_to(root).with_suffix("") for path in sorted(root.rglob("*.py"))]
    names = [".".join(["paraforge", *(part for part in file.parts if part != "__init__")]) for file in files]
    return [name for name in names if not name.startswith(PROGRAMS)]


def _reap(signum: int, frame: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _run(connection: socket.socket, fsync: Callable[..., None]) -> None:
    """Become the program that is asked for."""
    length, files, _, _ = socket.recv_fds(connection, 9, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    received = b""
    while len(received) < int(length):
        received += connection.recv(1 << 16) or os._exit(1)
    # Debian's Python has one of its own; a program's is another.
    sys.modules.pop("sitecustomize", None)
    name, directory, group, count, *words = map(os.fsdecode, received.split(b"\0"))
    arguments, settings = words[: int(count)], words[int(count) :]
    os.setpgid(0, int(group))
    os.chdir(directory)
    os.environ.clear()
    for setting in settings:
        key, _, value = setting.partition("=")
        os.environ[key] = value
    if REAL_FSYNC in os.environ:
        os.fsync = fsync
    connection.sendall(b"%10d" % os.getpid())
    # Killed before it answers, it takes nobody with it who had not joined its group.
    if connection.recv(5) != b"begin":
        os._exit(1)
    program, leave = os.getpid(), os._exit

    def end(code: int) -> None:
        if os.getpid() == program:  # not a child of it
            connection.send(bytes([code & 255]))
        leave(code)

    vars(os)["_exit"] = end
    code: object = 1
    try:
        if name == "python":
            how, what, *rest = arguments
            sys.argv = [how, *rest]
            sys.path.insert(0, directory)
            if how == "-m":
                runpy.run_module(what, run_name="__main__", alter_sys=True)
            else:
                main = sys.modules["__main__"] = ModuleType("__main__")
                exec(compile(what, "<string>", "exec"), main.__dict__)
        else:
            sys.argv = [str(SCRIPTS / name), *arguments]
            sys.path.insert(0, str(SCRIPTS))
            runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as ending:
        code = ending.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
    finally:
        vars(threading)["_shutdown"]()  # as an interpreter that ends
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):  # closed by whom reads it, or by a failed flush
            sys.stdout.flush()
        os._exit(int(str(code)))


if __name__ == "__main__":
    sys.path.pop(0)  # the directory of the tests
    serve(Path(sys.argv[1]))
