"""Files of DVC that were cut at any place are told from good ones and from other faults, and set aside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paraforge.shards.dvc_files import LOCK, RUNNING, damaged, set_aside

pytest.importorskip("dvc")
STAGES = "stages:\n  one:\n    cmd: echo 1 > out.txt\n    outs:\n      - out.txt\n"


def dvc(project: Path, *arguments: str) -> int:
    command = [sys.executable, "-m", "dvc", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, check=False).returncode


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert dvc(tmp_path, "init", "--no-scm", "--quiet") == 0
    (tmp_path / "dvc.yaml").write_text(STAGES)
    assert damaged(tmp_path) == {}  # nothing was run yet
    assert dvc(tmp_path, "repro") == 0
    assert damaged(tmp_path) == {}
    return tmp_path


@pytest.mark.slow
def test_a_cut_lock_file_is_set_aside_and_the_run_goes_on(project: Path) -> None:
    whole = (project / LOCK).read_text()
    refused = 0
    for length in (0, len("schema"), whole.index("one:") + 4, whole.index("md5") + 3):
        (project / LOCK).write_text(whole[:length])
        found = damaged(project)
        # What DVC can read is no damage: the stages that are missing in it run again.
        assert (dvc(project, "repro") != 0) == bool(found)
        if found:
            refused += 1
            assert list(found) == [LOCK]
            assert set_aside(project) == [(LOCK, Path("dvc.lock.damaged"))]
            assert dvc(project, "repro") == 0
        assert (project / LOCK).read_text() == whole
    assert refused


@pytest.mark.slow
@pytest.mark.parametrize("content", ["", '{"write": {"/x'])
def test_a_cut_list_of_running_processes_is_set_aside(project: Path, content: str) -> None:
    (project / RUNNING).write_text(content)
    (project / "out.txt").unlink()
    assert dvc(project, "repro") != 0
    assert list(damaged(project)) == [RUNNING]
    assert set_aside(project) == [(RUNNING, RUNNING.with_name("rwlock.damaged"))]
    assert dvc(project, "repro") == 0


@pytest.mark.slow
def test_other_faults_are_not_the_lock_files(project: Path) -> None:
    (project / "dvc.yaml").write_text("stages: [")
    assert damaged(project) == {}
