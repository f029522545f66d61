"""Every command and every stage: a signal at any time is exit code 130, a closed pipe is quiet."""

import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.interface.cli import COMMANDS
from tests.here import inside, run_stage
from tests.project import (
    CHOICES,
    TRAINED,
    ends_politely,
    made_once,
    make_project,
    project_environment,
    stage_names,
    warm_environment,
)

EXITING = 4  # of a process's flags in /proc, as Linux has it: PF_EXITING
STAGES = stage_names()
SENTENCES, PAIRS = "sentences.txt", "pairs.tsv"
MODEL, TABLE = "models/embeddings/word", "models/paragram"
QUERY = "SELECT count(*) FROM corpus a, corpus b, corpus c, corpus d WHERE a.line * b.line > c.line * d.line"

# Something to do for every command, for a second or more where that is possible.
WORK = {
    "configure": [*CHOICES],
    "plan": ["--json"],
    "model": ["import", TABLE, "out"],
    "translate": [SENTENCES, "out", "--engine", "fake"],
    "memory": ["import", "translations.parquet", "--name", "mine"],
    "paraphrase": [SENTENCES, "out", "--model", MODEL],
    "score": [PAIRS, "out.parquet", "--vectors", TABLE],
    "verify": ["data/corpus"],
    "summary": [],
    "query": ["data/corpus", QUERY],
    "sample": ["data/corpus", "-n", "1000"],
    "push": ["data/corpus", "me/corpus", "--dry-run"],
    "annotate": ["data/corpus", "-n", "10", "--port", "0"],
    "browse": ["data/corpus", "--port", "0"],
    "lexicon": ["extract", PAIRS, "out", "--all-scores"],
    "train": [PAIRS, "out", "--set", "training.epochs=50"],
    "embed": [MODEL, SENTENCES, "out.npy", "--workers", "1"],
    "triplets": ["data/corpus", "out", "--encoder", MODEL],
    "evaluate": [MODEL, "--sts", "sts.tsv"],
    "export": [MODEL, "out", "--format", "safetensors"],
    "init": ["new"],
    "doctor": [],
}
CASES = [
    *(["paraforge", name, *arguments] for name, arguments in WORK.items()),
    *([sys.executable, "-m", f"paraforge.stages.{name}", *names] for name, names in STAGES.items()),
]


def test_every_command_is_here() -> None:
    assert WORK.keys() == set(COMMANDS)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose stages have all been run, without its work directory, and files for the commands."""
    return made_once(tmp_path_factory, "signals", make_finished)


def make_finished(project: Path) -> None:
    make_project(project, TRAINED, "triplets=default", "embeddings.models.word.encoder.dimension=16")
    with inside(project):
        for name in STAGES:
            assert run_stage(name)
    shutil.rmtree(project / "work")
    lines = [f"the {number} house of {number % 17} rooms" for number in range(20_000)]
    (project / SENTENCES).write_text("\n".join(lines) + "\n")
    pairs = [f"{one}\t{other}" for one, other in itertools.pairwise(lines)]
    (project / PAIRS).write_text("\n".join(pairs) + "\n")
    table = pa.table({"sentence": lines, "hypotheses": lines})
    pq.write_table(table, project / "translations.parquet")
    (project / "sts.tsv").write_text("".join(f"{n % 6}\t{pair}\n" for n, pair in enumerate(pairs)))


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("command", "number"),
    zip(CASES, itertools.cycle([signal.SIGTERM, signal.SIGINT]), strict=False),
    ids=lambda one: " ".join(one[1:3]) if isinstance(one, list) else one.name,
)
def test_a_signal_at_a_random_time(
    finished: Path, tmp_path: Path, command: list[str], number: signal.Signals
) -> None:
    """Each with one of the two signals: they have one handler, which tests/test_interrupted_word.py tests."""
    project = tmp_path / "project"
    shutil.copytree(finished, project, symlinks=True)
    dice = random.Random(f"{command} {number}")
    longest = 2.0
    for _ in range(20):
        with (tmp_path / "said").open("wb") as said:
            process = subprocess.Popen(
                command, cwd=project, env=project_environment(project), stdout=said, stderr=said
            )
            assert ends_politely(process)
            started = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(dice.uniform(0, longest))
            gone = process.returncode is not None
            if not gone:
                os.kill(process.pid, number)
                status = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                sent = time.monotonic()
                process.wait(60)
                # A process that the system is already taking down does not hear of it.
                leaving = int(status[6]) & EXITING or time.monotonic() - sent < 1
                deaf = process.returncode != 130 and leaving
                gone = status[0] == "Z" or bool(deaf and command[1] not in ("annotate", "browse"))
        words = (tmp_path / "said").read_text()
        assert "Traceback" not in words, words
        if not gone:
            break
        longest = min(longest / 2, time.monotonic() - started)  # it had ended before
    if command[1] in ("annotate", "browse") and " at http://" in words:
        assert process.returncode == 0  # how it is ended
        return
    assert process.returncode == 130, (process.returncode, words)
    assert "interrupted" in words


@pytest.mark.full
@pytest.mark.parametrize("arguments", [
    ["query", "data/corpus", "SELECT a.* FROM corpus a, corpus b", "-f", "csv"],
    ["sample", "data/corpus", "-n", "1000"],
    ["--help"],
], ids=lambda arguments: arguments[0])  # fmt: skip
def test_a_closed_pipe_is_quiet(finished: Path, arguments: list[str]) -> None:
    process = subprocess.Popen(
        ["paraforge", *arguments],
        cwd=finished,
        env=warm_environment(),
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
