"""Commands import late: what takes a second to import is imported by those alone that compute with it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.selection.published import publish_pairs
from tests.project import environment

HEAVY = {"torch", "scipy", "sklearn", "transformers", "sentence_transformers", "ctranslate2", "fairseq"}
HEAVY |= {"numba", "sacremoses", "dask", "distributed", "stanza", "datasets", "polars"}
# Runs commands one after the other in one process, so that what a later one imports shows.
RUN = f"""
import json, sys
from typer.testing import CliRunner
from paraforge.interface.cli import app
for arguments in json.load(sys.stdin):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    heavy = sorted({HEAVY!r} & set(sys.modules))
    assert not heavy, (arguments, heavy)
"""


def run_all(commands: list[list[str]], directory: Path) -> None:
    program = [sys.executable, "-c", RUN]
    options = {"cwd": directory, "env": environment(), "capture_output": True, "text": True}
    done = subprocess.run(program, input=json.dumps(commands), check=False, **options)
    assert done.returncode == 0, done.stderr


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    from tests.interface.cli.test_every_command import commands

    run_all([["--help"], *([*name.split(), "--help"] for name, _ in commands())], tmp_path)


@pytest.mark.full
def test_looking_at_results_imports_nothing_heavy(tmp_path: Path) -> None:
    publish_pairs(tmp_path / "data", rows=200)
    (tmp_path / "work").mkdir()
    (tmp_path / "sentences.txt").write_text("Pes běží.\n", encoding="utf-8")
    run_all(
        [
            ["configure", "corpus=sample"],
            ["verify", "data/corpus", "data/rejected"],
            ["sample", "data/corpus", "-n", "2"],
            ["query", "data/corpus", "SELECT count(*) FROM corpus"],
            ["summary"],
            ["translate", "sentences.txt", "translations.tsv", "--engine", "fake"],
            ["doctor", "--repair"],
        ],
        tmp_path,
    )
