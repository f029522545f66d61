"""What is in the work directory, and files of DVC that were cut off."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards import dvc_files
from paraforge.base.shards.dvc_files import LOCK, RUNNING, _looks_whole, damaged, repair, set_aside
from paraforge.base.shards.inventory import StepWork, list_work, prune
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import run_step
from paraforge.base.shards.work import CURRENT_NAME, WorkDirectory
from tests import project as projects
from tests import warm
from tests.base.shards.steps import multiply_step, write_input
from tests.project import made_once


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_input(tmp_path / "in", rows=45)
    return tmp_path


def run(place: Path, factor: int, **arguments: object) -> int:
    resources = Resources.model_validate({"workers": 1, "work": place / "work"})
    step = multiply_step(factor, **arguments)
    return run_step(step, [place / "in"], place / "data" / "out", resources).reused


def look(place: Path) -> StepWork:
    (step,) = list_work(place / "work", [place / "data"])
    return step


def test_only_what_the_last_run_used_is_current(place: Path) -> None:
    run(place, 2)
    run(place, 3)
    step = look(place)
    assert (len(step.of("current")), len(step.of("unfinished")), len(step.of("old"))) == (5, 0, 5)
    run(place, 2)
    assert {entry.name for entry in look(place).of("current")} == {e.name for e in step.of("old")}


def test_pruning_frees_the_old_and_keeps_the_current(place: Path) -> None:
    run(place, 2)
    run(place, 3)
    size = look(place).size("old")
    assert size > 0
    assert prune(place / "work", [place / "data"], look(place), ["old"]) == size
    assert look(place).of("old") == []
    assert run(place, 3) == 5
    assert run(place, 2) == 0


def test_half_of_the_next_run_is_no_rubbish(place: Path) -> None:
    run(place, 2)
    noted = place / "work" / "multiply" / CURRENT_NAME
    os.utime(noted, (1, 1))
    with pytest.raises(IncompleteError):
        run(place, 3, fail_at=33)
    assert (len(look(place).of("current")), len(look(place).of("unfinished"))) == (5, 4)
    prune(place / "work", [place / "data"], look(place), ["old"])
    assert run(place, 3) == 4


def test_without_a_note_what_is_published_is_current(place: Path) -> None:
    run(place, 2)
    for path in (place / "work" / "multiply").glob("*.parquet"):
        os.utime(path.with_suffix(".json"), (1, 1))
        os.utime(path, (1, 1))
    run(place, 3)
    (place / "work" / "multiply" / CURRENT_NAME).unlink()
    assert (len(look(place).of("current")), len(look(place).of("old"))) == (5, 5)


def test_trained_models_are_known_by_what_describes_them(tmp_path: Path) -> None:
    for key, words in (("a", "1"), ("b", "2")):
        table = tmp_path / "work" / "paragram" / key / "table"
        table.mkdir(parents=True)
        (table / "table.json").write_text(words)
        os.utime(table / "table.json", (int(words), int(words)))
    (tmp_path / "models" / "paragram").mkdir(parents=True)
    (tmp_path / "models" / "paragram" / "table.json").write_text("2")
    (step,) = list_work(tmp_path / "work", [tmp_path / "models"])
    assert [(entry.name, entry.state) for entry in step.entries] == [("a", "old"), ("b", "current")]
    prune(tmp_path / "work", [tmp_path / "models"], step, ["old"])
    assert sorted(path.name for path in (tmp_path / "work" / "paragram").iterdir()) == ["b", "lock"]


def test_a_step_in_use_is_left_alone(place: Path) -> None:
    run(place, 2)
    run(place, 3)
    with WorkDirectory("multiply", place / "work").lock():
        step = look(place)
        assert step.holder is not None and f"process {os.getpid()} on " in step.holder
        assert prune(place / "work", [place / "data"], step, ["old", "current"]) == 0
    assert len(look(place).entries) == 10


def test_no_work_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such work directory"):
        list_work(tmp_path / "work", [])


pytest.importorskip("dvc")
STAGES = "stages:\n  one:\n    cmd: echo 1 > out.txt\n    outs:\n      - out.txt\n"


@pytest.fixture(scope="module", autouse=True)
def quick_dvc() -> Iterator[None]:
    """DVC is asked by a program that starts at once."""
    warm.ask_dvc_with(warm.programs() / "python")
    yield
    dvc_files.sys = sys  # type: ignore[attr-defined]


def dvc(project: Path, *arguments: str) -> int:
    return projects.run("dvc", *arguments, cwd=project, expect=None).returncode


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


@pytest.mark.full
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


@pytest.mark.full
@pytest.mark.parametrize("content", ["", '{"write": {"/x'])
def test_a_cut_list_of_running_processes_is_set_aside(project: Path, content: str) -> None:
    (project / RUNNING).write_text(content)
    (project / "out.txt").unlink()
    assert dvc(project, "repro") != 0
    assert list(damaged(project)) == [RUNNING]
    assert set_aside(project) == [(RUNNING, RUNNING.with_name("rwlock.damaged"))]
    assert dvc(project, "repro") == 0


@pytest.mark.full
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
      cloud:
        store:
          etag: 5d41402abc4b2a76b9719d911017c592
          version_id: c5WvHPBZ
    - path: data/ingested
      hash: md5
      files:
      - relpath: manifest.json
        md5: '12345678901234567890123456789012'
        size: 300
        cloud:
          store:
            etag: 5d41402abc4b2a76b9719d911017c592
            version_id: c5WvHPBZ
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
    assert yaml.safe_load(WHOLE) and _looks_whole(path)
    assert refused > 100 and quiet > 100


@pytest.mark.full
@pytest.mark.parametrize("path", [LOCK, RUNNING])
def test_any_command_repairs_a_cut_file(project: Path, path: Path) -> None:
    """Whatever is asked for next: here a command that needs no project at all."""
    assert repair(project) == []
    (project / path).write_text("schema: '2")
    assert f"{path} was cut off" in projects.run("paraforge", "work", "list", cwd=project, expect=None).stderr
    assert damaged(project) == {}
    assert dvc(project, "repro") == 0
