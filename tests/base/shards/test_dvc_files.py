"""Files of DVC that were cut at any place are told from good ones and from other faults, and set aside."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.base.shards import dvc_files
from paraforge.base.shards.dvc_files import LOCK, RUNNING, _looks_whole, damaged, repair, set_aside
from tests import warm
from tests.project import made_once, run

pytest.importorskip("dvc")
STAGES = "stages:\n  one:\n    cmd: echo 1 > out.txt\n    outs:\n      - out.txt\n"


@pytest.fixture(scope="module", autouse=True)
def quick_dvc() -> Iterator[None]:
    """DVC is asked by a program that starts at once."""
    warm.ask_dvc_with(warm.programs() / "python")
    yield
    dvc_files.sys = sys  # type: ignore[attr-defined]


def dvc(project: Path, *arguments: str) -> int:
    return run("dvc", *arguments, cwd=project, expect=None).returncode


def make(directory: Path) -> None:
    directory.mkdir()
    assert dvc(directory, "init", "--no-scm", "--quiet") == 0
    (directory / "dvc.yaml").write_text(STAGES)
    assert damaged(directory) == {}  # nothing was run yet
    assert dvc(directory, "repro") == 0
    assert damaged(directory) == {}


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    shutil.copytree(made_once(tmp_path_factory, "dvc", make), tmp_path, dirs_exist_ok=True)
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


WHOLE = """schema: '2.0'
stages:
  ingest:
    cmd: python -m paraforge.stages.ingest
    deps:
    - path: inputs/ingest
      hash: md5
      md5: a2e41234567890123456789012345678.dir
      size: 1024
      nfiles: 2
    params:
      params.yaml:
        ingest:
          kind: bitext
          sources:
          - name: sample
      pipeline/versions.py:
        INGEST: 1
    outs:
    - path: metrics/ingest.json
      hash: md5
      md5: '12345678901234567890123456789012'
      size: 300
      isexec: true
  embeddings@word:
    cmd: python -m paraforge.stages.embeddings word
"""


def test_the_quick_look_sees_every_cut_that_dvc_refuses(tmp_path: Path) -> None:
    import yaml
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from dvc.utils.serialize import parse_yaml

    path = tmp_path / LOCK
    refused = quiet = 0
    for length in range(len(WHOLE) + 1):
        path.write_text(WHOLE[:length])
        try:
            COMPILED_LOCKFILE_SCHEMA(parse_yaml(WHOLE[:length], LOCK))
        except Exception:
            refused += 1
            assert not _looks_whole(path), WHOLE[:length]
        else:
            quiet += _looks_whole(path)
    assert yaml.safe_load(WHOLE)
    assert refused > 100 and quiet > 100


@pytest.mark.slow
@pytest.mark.parametrize("path", [LOCK, RUNNING])
def test_any_command_repairs_a_cut_file(project: Path, path: Path) -> None:
    """Whatever is asked for next: here a command that needs no project at all."""
    assert repair(project) == []
    (project / path).write_text("schema: '2")
    assert f"{path} was cut off" in run("paraforge", "work", "list", cwd=project, expect=None).stderr
    assert damaged(project) == {}
    assert dvc(project, "repro") == 0
