"""How a query ends when somebody stops it or reads no further."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.project import ends_politely, warm_environment

# Hours of work for the database; Python has nothing to do meanwhile.
LONG = (
    "SELECT count(*) FROM range(100000) a, range(1000000) b, corpus WHERE hash(a.range, b.range) % 7 = line"
)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl"])
def test_ctrl_c_ends_a_query(corpus: Path, form: str) -> None:
    """In a process of its own, as a signal that a library swallows would otherwise hang the tests."""
    code = "import sys; sys.argv[0] = 'paraforge'; from paraforge.interface.cli import main; main()"
    command = [sys.executable, "-c", code, "query", str(corpus), LONG]
    with subprocess.Popen([*command, "-f", form], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert ends_politely(process)
        timer = threading.Timer(0.7, process.send_signal, (signal.SIGINT,))
        timer.start()
        try:
            _, error = process.communicate(timeout=120)
        finally:
            process.kill()
            timer.cancel()
    assert process.returncode == 130, error.decode()


@pytest.mark.parametrize("form", ["table", "csv", "tsv", "json", "jsonl"])
def test_a_closed_pipe_is_quiet(corpus: Path, form: str) -> None:
    """What ``| head -1`` does: the reader goes away in the middle of the output."""
    sql = "SELECT a.reference FROM corpus a, corpus b LIMIT 20000"
    with subprocess.Popen(
        ["paraforge", "query", str(corpus), sql, "-f", form, "--count", "20000"],
        env=warm_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read().decode()
        assert (process.wait(), error) == (0, "")
