"""Files that query, sample and diff write; how they end when somebody stops them or reads no further."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from tests.here import run_command
from tests.project import ends_politely, warm_environment

QUERY = "SELECT source, line FROM corpus"
# Hours of work for the database; Python has nothing to do meanwhile.
LONG = (
    "SELECT count(*) FROM range(100000) a, range(1000000) b, corpus WHERE hash(a.range, b.range) % 7 = line"
)
COMMANDS = {
    "query": ("query", "CORPUS", QUERY),
    "sample": ("sample", "CORPUS", "-n", "5"),
    "diff": ("diff", "CORPUS", "CORPUS"),
}
FORMATS = {
    "query": ("table", "csv", "tsv", "json", "jsonl", "parquet"),
    "sample": ("pairs", "table", "csv", "tsv", "json", "jsonl", "parquet"),
    "diff": ("text", "json"),
}
CASES = [(command, form) for command, forms in FORMATS.items() for form in forms]


def run(corpus: Path, command: str, *more: str) -> None:
    """Run a command; its error is raised."""
    run_command(*(corpus if part == "CORPUS" else part for part in COMMANDS[command]), *more)


@pytest.mark.parametrize(("command", "form"), CASES)
def test_only_what_a_command_made_is_replaced(corpus: Path, tmp_path: Path, command: str, form: str) -> None:
    output = tmp_path / "out"
    options = ("-f", form, "-o", str(output))
    run(corpus, command, *options)
    made = output.read_bytes()
    assert made
    assert form == "parquet" or b"\x1b" not in made  # no colours
    with pytest.raises(InputError, match="already there"):
        run(corpus, command, *options)
    run(corpus, command, *options, "--force")
    assert output.read_bytes() == made
    output.write_text("years of work\n")
    for force in ([], ["--force"]):
        with pytest.raises(InputError):
            run(corpus, command, *options, *force)
    assert output.read_text() == "years of work\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["_manifest.json", "_shards.json", "_README.md", "shard-00000.parquet"])
def test_files_of_a_corpus_are_not_replaced(own_corpus: Path, command: str, name: str) -> None:
    before = (own_corpus / name).read_bytes()
    for force in ([], ["--force"]):
        for form in FORMATS[command]:
            with pytest.raises(InputError):
                run(own_corpus, command, "-f", form, "-o", str(own_corpus / name), *force)
    assert (own_corpus / name).read_bytes() == before


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
