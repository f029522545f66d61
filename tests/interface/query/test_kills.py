"""Whatever writes a corpus or what is made of one is killed at any moment: nothing is half, nothing is left,
and the same call gives the same bytes."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.publication.test_groups import SPLITS, related_pairs
from tests.corpus.selection.corpora import with_columns
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command
from tests.project import digests, warm_environment

# Runs the command line, killed at the n-th thing that is done to a file below a directory.
PROGRAM = """
import os, signal, sys
from paraforge.interface.cli import main

directory, left = sys.argv[1], int(sys.argv[2])
KINDS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod", "shutil.copyfile")


def look(event, arguments):
    global left
    if event in KINDS and any(str(one).startswith(directory) for one in arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(look)
sys.argv = ["paraforge", *sys.argv[3:]]
try:
    main()
finally:
    print(left, file=sys.stderr)
"""
MANY = 1_000_000
COMMANDS = {
    "merge": ["merge", "one", "two"],
    "groups": ["export-corpus", "one", "--groups"],
    "part": ["export-corpus", "one", "--where", "overlap_1 < 0.5"],
    "csv": ["export-corpus", "one", "--format", "csv"],
    "text": ["export-corpus", "one"],
    "score": ["score", "pairs.csv"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kills")
    other = with_columns(related_pairs(400, 5), source=["other"] * 400)
    for name, table, splits in (("one", related_pairs(), SPLITS), ("two", other, {"test": 20})):
        publish_pairs(root / name, table=table, splits=splits)
    run_command("query", root / "one" / "corpus", "SELECT reference, translation FROM corpus LIMIT 200",
                "--output", root / "pairs.csv")  # fmt: skip
    return root


def arguments(kind: str, place: Path, output: Path) -> list[str]:
    paths = {
        "one": place / "one" / "corpus",
        "two": place / "two" / "corpus",
        "pairs.csv": place / "pairs.csv",
    }
    given = [str(paths.get(one, one)) for one in COMMANDS[kind]]
    names = {"text": [str(output / "out.jsonl")], "score": [str(output / "out.csv"), "--header"]}
    return [*given, *names.get(kind, ["-o", str(output / "out")])]


def killed(given: list[str], directory: Path, at: int) -> tuple[int, int]:
    """Run a command until the n-th thing that it does below a directory: exit status, what was left of n."""
    command = [sys.executable, "-c", PROGRAM, str(directory), str(at), *given]
    ended = subprocess.run(command, env=warm_environment(), capture_output=True, text=True, check=False)
    return ended.returncode, int(ended.stderr.split()[-1]) if ended.returncode == 0 else 0


@pytest.mark.parametrize("kind", COMMANDS)
def test_killed_at_any_moment(kind: str, place: Path, tmp_path: Path) -> None:
    wanted, output = tmp_path / "wanted", tmp_path / "output"
    wanted.mkdir()
    code, left = killed(arguments(kind, place, wanted), wanted, MANY)
    steps, expected = MANY - left, digests(wanted)
    assert code == 0 and steps >= 2 and len(list(wanted.iterdir())) == 1
    for at in sorted({1, steps // 3, 2 * steps // 3, steps - 1, steps} - {0}):
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()
        assert killed(arguments(kind, place, output), output, at)[0] == -signal.SIGKILL
        finished = [path for path in output.iterdir() if not path.name.startswith(".")]
        assert all(digests(output)[name] == digest for name, digest in expected.items() if finished)
        run_command(*arguments(kind, place, output), *(["--force"] if finished else []))
        assert digests(output) == expected, f"killed at {at} of {steps}"
        assert len(list(output.iterdir())) == 1
