"""A signal ends a command, a stage and a page with exit code 130, and a closed pipe is quiet."""

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
from paraforge.base.errors import Interrupted
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
def test_a_signal_is_code_130(
    project: Path, tmp_path: Path, kind: str, seconds: float, number: signal.Signals
) -> None:
    """While it imports, and in the middle of its work."""
    pairs = [f"{one}\t{other}\n" for one, other in itertools.pairwise(LINES)]
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


@pytest.mark.full
@pytest.mark.parametrize("arguments", [["sample", "data/corpus", "-n", "1000"], ["--help"]])
def test_a_closed_pipe_is_quiet(project: Path, arguments: list[str]) -> None:
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
    ("number", "said"),
    [
        (signal.SIGTERM, "SIGTERM: stopping after a checkpoint"),
        (signal.SIGINT, "Ctrl-C: stopping after a checkpoint; press it again to stop at once"),
    ],
)
def test_a_signal_while_a_record_is_written(
    number: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stream is not reentrant, and the signal's own message must not be written by the same thread."""

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


def test_a_second_ctrl_c_means_now_and_a_second_sigterm_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
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
