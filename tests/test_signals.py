"""Signals end commands, stages and pages with exit code 130; closed pipes are quiet."""

import io
import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paraforge.base import interrupts
from paraforge.base.errors import InputError, Interrupted
from paraforge.base.interrupts import graceful_interrupts
from tests.project import environment, project_environment

LINES = [f"the {number} house of {number % 17} rooms" for number in range(20_000)]


@pytest.fixture
def project(finished_project: Path) -> Path:
    """A finished project; what is started here changes nothing in it."""
    return finished_project


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("seconds", [0.5, 4.0])
@pytest.mark.parametrize("kind", ["command", "stage"])
def test_signal_exits_with_130(
    project: Path, tmp_path: Path, kind: str, seconds: float, number: signal.Signals
) -> None:
    """The signal arrives during imports, or in the middle of work."""
    pairs = [f"{first}\t{second}\n" for first, second in itertools.pairwise(LINES)]
    (tmp_path / "pairs.tsv").write_text("".join(pairs), encoding="utf-8")
    if kind == "command":
        command = ["paraforge", "train", "pairs.tsv", "out", "--set", "training.epochs=500"]
        command[0] = str(Path(sys.executable).parent / command[0])
    else:
        (tmp_path / "data").symlink_to(project / "data")
        (tmp_path / "params.yaml").write_text(
            (project / "params.yaml").read_text().replace("epochs: 5\n", "epochs: 5000\n")
        )
        command = [sys.executable, "-m", "paraforge.stages.paragram"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=project_environment(tmp_path), stderr=subprocess.PIPE, text=True
    )
    timer = threading.Timer(seconds, os.kill, (process.pid, number))
    timer.start()
    _, words = process.communicate(timeout=120)
    assert process.returncode in (130, -number if seconds < 1 else 130), words
    if process.returncode == 130:  # otherwise the program's first line had not run yet
        assert "Traceback" not in words


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_streams_are_opened_on_the_null_device(
    tmp_path: Path, closed: tuple[int, ...]
) -> None:
    """Otherwise a message would be written into the file that gets the number of the closed stream."""
    program = (
        "from paraforge.base.interrupts import end_on_signals, last_words\n"
        "end_on_signals()\n"
        "import os, sys\n"
        "with last_words(), open('data', 'w') as file:\n"
        "    assert file.fileno() > 2\n"
        "    sys.stdin.read(); print('said'); print('told', file=sys.stderr); os.write(2, b'interrupted')\n"
        f"    null = [os.path.samestat(os.fstat(n), os.stat(os.devnull)) for n in {closed}]\n"
        "    file.write(f'{all(null)}')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(),
        input=b"",
        capture_output=True,
        preexec_fn=lambda: [os.close(number) for number in closed] and None,
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "data").read_text() == "True"


@pytest.mark.full
@pytest.mark.parametrize("arguments", [["sample", "data/corpus", "-n", "1000"], ["--help"]])
def test_closed_pipe_is_quiet(project: Path, arguments: list[str]) -> None:
    process = subprocess.Popen(
        ["paraforge", *arguments],
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    words = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert "Traceback" not in words and "Broken pipe" not in words and "Exception" not in words


@pytest.mark.parametrize(
    ("error", "closed", "code", "said"),
    [
        (InputError("bad"), (), 2, ["bad"]),
        (OSError("broken"), (), 1, ["broken"]),
        (MemoryError(), (), 1, ["memory ran out"]),
        (BrokenPipeError("another program ended"), (), 1, ["another program ended"]),
        (BrokenPipeError(), (1,), 0, []),
        (BrokenPipeError(), (1, 2), 0, []),
        (BrokenPipeError(), (2,), 1, []),
        (UnicodeEncodeError("utf-8", "a\udce9", 1, 2, "surrogates not allowed"), (), 2, ["Rename it"]),
    ],
)
def test_errors_become_messages_and_exit_codes(
    monkeypatch: pytest.MonkeyPatch, error: Exception, closed: tuple[int, ...], code: int, said: list[str]
) -> None:
    monkeypatch.setattr(interrupts, "_is_closed", closed.__contains__)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    told: list[str] = []
    with pytest.raises(SystemExit) as ended, interrupts.errors_in_words(told.append):
        raise error
    assert (ended.value.code, len(told)) == (code, len(said))
    assert all(words in message for words, message in zip(said, told, strict=True))


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGTERM, "SIGTERM: stopping after a checkpoint"),
        (signal.SIGINT, "Ctrl-C: stopping after a checkpoint; press it again to stop at once"),
    ],
)
def test_signal_during_record_write(number: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Streams are not reentrant, so the thread that is writing must not write the signal's message."""

    class Stream(io.StringIO):
        writing: int | None = None

        def flush(self) -> None:
            if self.writing == threading.get_ident():
                raise RuntimeError("reentrant call")
            if self.writing is None:
                self.writing = threading.get_ident()
                signal.raise_signal(number)
                self.writing = 0

    stream = Stream()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        with pytest.raises(Interrupted), graceful_interrupts():
            logging.getLogger().warning("working")
            for _ in range(100):
                if said in stream.getvalue():
                    break
                time.sleep(0.05)
    finally:
        logging.getLogger().removeHandler(handler)
    assert stream.getvalue() == f"working\n{said}\n"
    assert "Logging error" not in capsys.readouterr().err


def test_second_ctrl_c_exits_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(interrupts, "_exit_now", lambda: ended.append(number))
    with pytest.raises(Interrupted), graceful_interrupts():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            assert not ended
            signal.raise_signal(number)
    assert ended == [signal.SIGINT]


def test_only_the_main_thread_handles_signals() -> None:
    def handler() -> object:
        with graceful_interrupts():
            return signal.getsignal(signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handler).result() == signal.getsignal(signal.SIGTERM)


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
def test_interruption_is_reported_once() -> None:
    """All cases run at the same time, because they mostly sleep."""
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
def test_signal_after_last_message(place: str, number: int) -> None:
    """The signal never kills the program, because then finished work would look failed."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDING, place], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(number)
    _, words = process.communicate()
    late = place == "taken down"
    assert (process.returncode, words) == ((0, "") if late else (130, "interrupted\n"))


WAITING = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from paraforge.base import interrupts
interrupts._GRACE_SECONDS = 0.1
interrupts.end_on_signals()
with interrupts.last_words():
    ThreadPoolExecutor().submit(time.sleep, 600)
    sys.exit(3)
"""


def test_errors_do_not_wait_for_threads() -> None:
    assert subprocess.run([sys.executable, "-c", WAITING], timeout=120).returncode == 3


CHILDREN = """
from paraforge.base import interrupts
interrupts.end_on_signals()
import contextlib, multiprocessing, sys, time

def work(ready):
    ready.set()
    time.sleep(600)

if __name__ == "__main__":
    if sys.argv[1] == "swallowed":
        interrupts._GRACE_SECONDS = 0.1
    with interrupts.last_words():
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        context.Process(target=work, args=(ready,), daemon=True).start()
        ready.wait()
        print("ready", flush=True)
        with contextlib.suppress(SystemExit) if sys.argv[1] == "swallowed" else contextlib.nullcontext():
            time.sleep(600)
        time.sleep(600)
"""


@pytest.mark.parametrize("exit_is", ["raised", "swallowed"])
def test_terminal_ctrl_c_ends_workers(tmp_path: Path, exit_is: str) -> None:
    """A terminal also sends Ctrl-C to the workers, which have the same main module."""
    (tmp_path / "program.py").write_text(CHILDREN)
    command = [sys.executable, "-W", "ignore", str(tmp_path / "program.py"), exit_is]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        _, words = process.communicate(timeout=120)
    assert (process.returncode, words) == (130, "interrupted\n")
