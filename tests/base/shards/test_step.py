"""Steps: same bytes however they run, resuming, and recorded library versions."""

import importlib.metadata
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards.libraries import describe_differences, installed, is_made_otherwise, own_versions
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Jobs
from paraforge.base.shards.step import Step, _functions, compute_shard, run_step, shard_keys
from paraforge.base.shards.store import ShardDirectory, ShardView, read_parquet
from paraforge.base.shards.work import WorkDirectory, libraries_of
from paraforge.translation.engines import ENGINES, engine_class
from tests.base.shards.steps import (
    Spoilt,
    build_nothing,
    build_rows,
    build_spoilt,
    multiply_step,
    write_input,
)
from tests.project import digests


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_input(tmp_path / "in", rows=95)
    return tmp_path


def resources(place: Path, **values: object) -> Resources:
    return Resources.model_validate({"workers": 1, "in_process_rows": 0, "work": place / "work", **values})


def test_result_and_report(place: Path) -> None:
    report = run_step(multiply_step(3), [place / "in"], place / "out", resources(place))
    assert (report.rows, report.shards, report.reused) == (95, 10, 0)
    assert not _functions  # what they loaded is freed
    products = [
        value for table in ShardDirectory(place / "out").tables() for value in table["product"].to_pylist()
    ]
    assert products == [3 * line for line in range(95)]


def test_second_run_reuses_unless_parameter_changed(place: Path) -> None:
    run_step(multiply_step(3), [place / "in"], place / "out", resources(place))
    again = run_step(multiply_step(3), [place / "in"], place / "again", resources(place, batch_tokens=7))
    assert again.reused == 10 and digests(place / "out") == digests(place / "again")
    changed = run_step(multiply_step(4), [place / "in"], place / "out", resources(place))
    assert changed.reused == 0
    assert ShardDirectory(place / "out").read(0)["product"].to_pylist()[1] == 4


def test_keys_cover_exactly_what_decides_results(place: Path) -> None:
    """The position of a shard counts, too: two equal shards have separate results."""
    write_input(place / "equal", rows=3, rows_per_shard=1, line=7)
    one = replace(multiply_step(3), fingerprints={"model": "1"})
    changes: list[dict[str, object]] = [
        {},
        {"name": "other"},
        {"version": 2},
        {"parameters": {"factor": 4}},
        {"fingerprints": {"model": "2"}},
        {"fingerprints": {"vectors": "1"}},
    ]
    view = ShardView(place / "equal")
    keys = [key for change in changes for key in shard_keys(replace(one, **change), view)]
    assert len({*keys}) == len(keys) == 3 * len(changes)
    elsewhere = replace(one, arguments={}, device="cuda", at_once=2, libraries=("torch",), notes={"a": 1})
    assert shard_keys(elsewhere, view) == keys[:3]
    write_input(place / "other", rows=3, rows_per_shard=1, line=8)
    both = [
        ShardView(place / name, place / other) for name, other in (("equal", "other"), ("other", "equal"))
    ]
    assert not {*shard_keys(one, both[0])} & {*shard_keys(one, both[1])}  # the later one's columns are used


def test_old_shards_are_removed_after_publication(place: Path) -> None:
    former, step = (replace(multiply_step(factor), name="select") for factor in (3, 5))
    for one in (former, step):
        run_step(one, [place / "in"], place / "out", resources(place))
    left = {path.stem for path in (place / "work/select").rglob("*.parquet")}
    assert left == set(shard_keys(step, ShardView(place / "in")))


def test_worker_rebuilds_for_other_arguments(place: Path) -> None:
    shard, work = place / "in" / "shard-00001.parquet", place / "work"
    for factor in (2, 3):
        step = replace(multiply_step(3), arguments={"factor": factor})
        compute_shard(step, str(factor), [shard], work)
        made = read_parquet(WorkDirectory("multiply", work).file(str(factor)))
        assert made["product"].to_pylist()[0] == 10 * factor


def test_results_do_not_open_with_other_input(place: Path) -> None:
    run_step(multiply_step(3), [place / "in"], place / "out", resources(place))
    assert ShardView(place / "in", place / "out").total_rows == 95
    write_input(place / "in", rows=95, line=7)
    with pytest.raises(InputError, match="made from other shards of 'ingest'"):
        ShardView(place / "in", place / "out")


def test_failing_shard_is_reported_and_others_kept(place: Path) -> None:
    with pytest.raises(IncompleteError, match=r"1 of 10 shards failed.*\n.*shard 4 \(.*cannot multiply 44"):
        run_step(multiply_step(3, fail_at=44), [place / "in"], place / "out", resources(place))
    assert not (place / "out").exists()
    report = run_step(multiply_step(3), [place / "in"], place / "out", resources(place))
    assert report.reused == 9
    for shards, last in ((10, r"shard 9 [^\n]*"), (13, "and 3 more")):
        write_input(place / "all", rows=10 * shards, line=44)
        with pytest.raises(IncompleteError, match=rf"(?s){shards} of {shards} shards failed.*\n  - {last}$"):
            run_step(multiply_step(3, fail_at=44), [place / "all"], place / "none", resources(place))


def test_changed_input_shard_is_error(place: Path) -> None:
    shard = place / "in" / "shard-00003.parquet"
    shard.write_bytes(shard.read_bytes() + b"x")
    with pytest.raises(InputError, match=r"shard-00003\.parquet: cannot be read"):
        run_step(multiply_step(3), [place / "in"], place / "out", resources(place))


def test_added_input_reuses_unchanged_shards(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_step(multiply_step(3), [place / "in"], place / "out", resources(place))
    write_input(place / "more", rows=120)
    attempt = Mock(return_value=())
    with monkeypatch.context() as lost, pytest.raises(IncompleteError, match="3 shards were not made"):
        lost.setattr(Jobs, "attempt", attempt)
        run_step(multiply_step(3), [place / "more"], place / "out", resources(place))
    display = attempt.call_args.kwargs
    assert (display["done"], display["sizes"]) == (90, [10, 10, 10])
    report = run_step(multiply_step(3), [place / "more"], place / "out", resources(place))
    assert (report.shards, report.reused) == (12, 9)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.full)])
def test_two_threads_give_same_files(place: Path, device: str) -> None:
    """The threads are in this process, or in workers of a local cluster that declare a device."""
    run_step(multiply_step(3), [place / "in"], place / "one", resources(place))
    both = replace(multiply_step(3), at_once=2, device=device)
    report = run_step(both, [place / "in"], place / "two", resources(place, workers=2, work=place / "other"))
    assert report.shards == 10
    assert digests(place / "one") == digests(place / "two")
    failing = replace(multiply_step(5, fail_at=44), at_once=2)
    with pytest.raises(IncompleteError, match=r"1 of 10 shards failed.*\n.*shard 4 \("):
        run_step(failing, [place / "in"], place / "three", resources(place, workers=2))


@pytest.mark.parametrize("at_once", [1, 3])
def test_broken_process_stops_in_process_run(place: Path, at_once: int) -> None:
    step = Step("give", 1, {}, build_spoilt, {"log": str(place / "lives"), "lives": 1}, at_once=at_once)
    with pytest.raises(Spoilt):
        run_step(step, [place / "in"], place / "out", resources(place, workers=at_once))


@pytest.mark.full
def test_broken_worker_is_replaced_without_loss(place: Path) -> None:
    log = place / "lives"
    step = Step("give", 1, {}, build_spoilt, {"log": str(log), "lives": 1})
    report = run_step(step, [place / "in"], place / "out", resources(place, workers=2))
    assert (report.rows, report.shards) == (95, 10)
    assert log.stat().st_size >= 2  # the first, and another in its place or beside it


@pytest.mark.parametrize("rows", [9, 11])
def test_lost_or_added_row_stops_run_before_publication(place: Path, rows: int) -> None:
    step = Step("wrong", 1, {}, build_rows, {"rows": rows})
    with pytest.raises(IncompleteError, match=f"wrong: shard 0 has {rows} rows, its input has 10"):
        run_step(step, [place / "in"], place / "out", resources(place))
    assert not (place / "out").exists()


def build_refused() -> Any:
    raise InputError("no such model")


def test_failed_start_fails_no_shard(place: Path) -> None:
    with pytest.raises(InputError, match=r"^no such model"):
        run_step(Step("refused", 1, {}, build_refused), [place / "in"], place / "out", resources(place))
    step = Step("nothing", 1, {}, build_nothing)
    with pytest.raises(IncompleteError, match=r"nothing cannot start on .*: RuntimeError: CUDA error"):
        run_step(step, [place / "in"], place / "out", resources(place))


STEP = replace(multiply_step(3), libraries=("ctranslate2", "sentencepiece"))


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Pretend that these versions of distributions are installed."""
    pretended: dict[str, str] = {}
    version = importlib.metadata.version
    monkeypatch.setattr(
        "paraforge.base.shards.libraries.version", lambda name: pretended.get(name) or version(name)
    )
    return pretended


@pytest.mark.parametrize("library", ["ctranslate2", "sentencepiece", "pyarrow"])
def test_library_upgrade_during_run(
    tmp_path: Path, upgrade: dict[str, str], library: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Finished shards are reused, the index names both versions, and one warning is logged."""
    upgrade[library] = "1.0"
    write_input(tmp_path / "in", rows=20)
    run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path))
    assert ShardDirectory(tmp_path / "out").description["libraries"][library] == ["1.0"]
    upgrade[library] = "2.0"
    assert run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path)).reused == 2
    assert ShardDirectory(tmp_path / "out").description["libraries"][library] == ["1.0"]
    assert "several versions" not in caplog.text
    write_input(tmp_path / "in", rows=40)
    assert run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path)).reused == 2
    assert ShardDirectory(tmp_path / "out").description["libraries"][library] == ["1.0", "2.0"]
    assert caplog.text.count(f"several versions of libraries ({library} 1.0, 2.0)") == 1


def test_worker_records_its_versions(tmp_path: Path, upgrade: dict[str, str]) -> None:
    write_input(tmp_path / "in", rows=10)
    work = WorkDirectory("multiply", tmp_path / "work")
    (key,) = shard_keys(STEP, ShardView(tmp_path / "in"))
    upgrade["sentencepiece"] = "0.1"
    compute_shard(STEP, key, [tmp_path / "in" / "shard-00000.parquet"], tmp_path / "work")
    assert libraries_of(work.file(key))["sentencepiece"] == "0.1"


@pytest.mark.parametrize(
    ("made", "otherwise"),
    [({"a": "1", "b": "2"}, ""), ({"a": "1", "b": "2", "c": "9"}, ""),
     ({"a": "1", "b": "3"}, "b 3 (2 is installed)"), ({"a": "1"}, "b unknown (2 is installed)"),
     ({}, "a unknown (1 is installed), b unknown (2 is installed)")],
)  # fmt: skip
def test_single_differing_version_is_reported(made: dict[str, str], otherwise: str) -> None:
    wanted = {"a": "1", "b": "2"}
    assert is_made_otherwise(made, wanted) is bool(otherwise)
    assert describe_differences([made], wanted) == otherwise


def test_missing_library_has_no_version() -> None:
    assert own_versions(["no-such-library"]) == {"no-such-library": "none"}


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_libraries_are_distributions(engine: str) -> None:
    versions = installed(engine_class(engine).LIBRARIES)
    assert "pyarrow" in versions
    # What translates is elsewhere, or nothing does.
    assert engine in ("fake", "imported", "server") or len(versions) > 1
