"""Killed after any file that was finished, mining resumes, and the result has the same bytes."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.products.triplets.corpora import mine
from tests.project import digests

pytestmark = pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(), reason="needs a server that forks"
)
VALUES: dict[str, Any] = {"negatives": 2}


def mine_and_die(corpus: Path, base: Path, finished: int) -> None:
    """What the child does: it dies when so many files have their names."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    replace: Callable[..., Path] = Path.replace
    left = [finished]

    def counted(path: Path, target: Path) -> Path:
        done = replace(path, target)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    Path.replace = counted  # type: ignore[method-assign,assignment]
    from paraforge.products.triplets import mining

    mining.ROWS_PER_CELL, mining.CANDIDATES, mining.ANCHORS_PER_JOB = 30, 40, 60
    mine(corpus, base / "out", **VALUES)


def run(corpus: Path, base: Path, finished: int) -> bool:
    """Mine in a process that dies after so many files; whether it ended well."""
    context = multiprocessing.get_context("forkserver")
    child = context.Process(target=mine_and_die, args=(corpus, base, finished))
    child.start()
    child.join()
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode == 0


# A piece is seven files, which are written again unless the last one exists.
@pytest.mark.full
def test_killed_again_and_again(corpus: Path, tmp_path: Path) -> None:
    assert run(corpus, tmp_path / "whole", -1)
    killed = 0
    while not run(corpus, tmp_path / "killed", 13):
        killed += 1
        assert killed < 30
        assert not (tmp_path / "killed" / "out").exists()
    assert killed >= 3
    assert digests(tmp_path / "killed" / "out") == digests(tmp_path / "whole" / "out")
    assert not list((tmp_path / "killed").rglob("*.tmp"))
    assert [path.name for path in (tmp_path / "killed/work/triplets").iterdir() if path.is_dir()] == []
