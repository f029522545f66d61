"""The work directory is pruned of what no run uses any more, and of nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards.inventory import StepWork, list_work, prune
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import run_step
from paraforge.base.shards.work import CURRENT_NAME, WorkDirectory
from tests.base.shards.steps import multiply_step, write_input


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
