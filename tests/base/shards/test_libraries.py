"""Shards of two versions of a library are never mixed unasked, whichever step and library it is."""

import importlib.metadata
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards import libraries
from paraforge.base.shards.libraries import installed, own_versions
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Jobs
from paraforge.base.shards.step import run_step, shard_keys
from paraforge.base.shards.store import ShardDirectory, ShardView
from paraforge.base.shards.work import SUFFIX, Begun, WorkDirectory, read_begun, write_begun
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.translation.engines import ENGINES, engine_module
from tests.base.shards.steps import multiply_step, write_input

STEP = replace(multiply_step(3), libraries=("ctranslate2", "sentencepiece"))


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Pretends that another version of a distribution is installed."""
    pretended: dict[str, str] = {}
    version = importlib.metadata.version

    def pretend(name: str, number: str) -> None:
        pretended[name] = number

    monkeypatch.setattr(
        "paraforge.base.shards.libraries.version", lambda name: pretended.get(name) or version(name)
    )
    return pretend


def resources(place: Path, choice: str = "stop") -> Resources:
    return Resources.model_validate({"workers": 1, "work": place / "work", "other_versions": choice})


@pytest.mark.parametrize("library", ["ctranslate2", "sentencepiece", "pyarrow"])
def test_an_upgrade_in_mid_run(tmp_path: Path, upgrade: Callable[[str, str], None], library: str) -> None:
    upgrade(library, "1.0")
    write_input(tmp_path / "in", rows=20)
    run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path))
    assert ShardDirectory(tmp_path / "out").description["libraries"][library] == ["1.0"]
    upgrade(library, "2.0")
    # Nothing is left to do: nothing is mixed.
    assert run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path)).reused == 2
    assert ShardDirectory(tmp_path / "out").description["libraries"][library] == ["1.0"]
    write_input(tmp_path / "in", rows=40)
    before = {path.name: path.read_bytes() for path in (tmp_path / "work/multiply").glob("*.parquet")}
    message = rf"2 of 4 shards .*made with {library} 1.0 \(2.0 is installed\).*reuse.*redo"
    with pytest.raises(InputError, match=message):
        run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path))
    assert {p.name: p.read_bytes() for p in (tmp_path / "work/multiply").glob("*.parquet")} == before
    reused = run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path, "reuse"))
    assert reused.reused == 2
    assert ShardDirectory(tmp_path / "out").description["libraries"][library] == ["1.0", "2.0"]
    redone = run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path, "redo"))
    assert redone.reused == 2
    assert ShardDirectory(tmp_path / "out").description["libraries"][library] == ["2.0"]


def test_a_library_that_the_step_does_not_use(tmp_path: Path, upgrade: Callable[[str, str], None]) -> None:
    write_input(tmp_path / "in", rows=20)
    run_step(multiply_step(3), [tmp_path / "in"], tmp_path / "out", resources(tmp_path))
    upgrade("ctranslate2", "2.0")
    write_input(tmp_path / "in", rows=40)
    assert run_step(multiply_step(3), [tmp_path / "in"], tmp_path / "out", resources(tmp_path)).reused == 2


def pretend_on_worker(library: str) -> None:
    """For a worker: another version of a distribution is installed."""
    libraries.version = lambda name: "0.1" if name == library else importlib.metadata.version(name)  # type: ignore[attr-defined]


@pytest.mark.full
@pytest.mark.parametrize("library", ["pyarrow", "sentencepiece"])
def test_a_worker_with_other_versions_is_named_and_the_others_continue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, library: str
) -> None:
    """Where all are like it, the run stops and names them."""
    write_input(tmp_path / "in", rows=300)
    run_step(STEP, [tmp_path / "in"], tmp_path / "wanted", resources(tmp_path / "here"))
    wanted = {path.name: path.read_bytes() for path in (tmp_path / "wanted").glob("*.parquet")}
    number = importlib.metadata.version(library)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        good, bad = client.nthreads()
        client.run(pretend_on_worker, library, workers=[bad])
        there = resources(tmp_path / "there").model_copy(update={"scheduler": cluster.scheduler_address})
        run_step(STEP, [tmp_path / "in"], tmp_path / "out", there)
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.parquet")} == wanted
        refusals = [one.getMessage() for one in caplog.records if "is not used" in one.getMessage()]
        assert refusals == [
            f"the worker at {bad} is not used: it has {library} 0.1, not {number}. The others continue"
        ]
        shutil.rmtree(there.work)
        client.run(pretend_on_worker, library, workers=[good])
        with pytest.raises(IncompleteError, match="every worker was refused") as raised:
            run_step(STEP, [tmp_path / "in"], tmp_path / "out", there)
        assert all(f"{one}: it has {library} 0.1, not {number}" in str(raised.value) for one in (good, bad))


def stop_when_asked(place: str, number: int) -> int:
    """A job that takes a moment; the first of a good worker that runs it ends that worker."""
    time.sleep(0.02)
    try:
        (Path(place) / "ended").touch(exist_ok=False)
    except FileExistsError:
        return number
    os._exit(1)


@pytest.mark.full
def test_the_only_worker_that_may_be_asked_dies_and_another_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraforge.base.shards.cluster._SECONDS_BETWEEN_COUNTS", 0.2)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.run(pretend_on_worker, "pyarrow", workers=[list(client.nthreads())[1]])
        arguments = [(str(tmp_path), number) for number in range(30)]
        found = dict(Jobs(client).run(stop_when_asked, arguments, description="test"))
        assert found == {number: number for number in range(30)}


def test_ingest(tmp_path: Path, upgrade: Callable[[str, str], None]) -> None:
    def run(choice: str) -> list[str]:
        (tmp_path / "pairs.tsv").write_text("".join(f"věta {n}\tsentence {n}\n" for n in range(300)))
        source: dict[str, object] = {"format": "tsv", "name": "a", "path": str(tmp_path / "pairs.tsv")}
        source["columns"] = {"source_text": 0, "reference": 1}
        section = IngestParameters.model_validate({"sources": [source], "rows_per_shard": 100})
        ingest(section, tmp_path / "out", resources(tmp_path, choice))
        found: list[str] = ShardDirectory(tmp_path / "out").description["libraries"]["pyarrow"]
        return found

    upgrade("pyarrow", "1.0")
    assert run("stop") == ["1.0"]
    upgrade("pyarrow", "2.0")
    next((tmp_path / "work/ingest").glob("*.parquet")).unlink()
    with pytest.raises(InputError, match=r"2 of 3 shards are finished and were made with pyarrow 1.0"):
        run("stop")
    assert run("reuse") == ["1.0", "2.0"]
    assert run("redo") == ["2.0"]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_libraries_of_engines_are_distributions(engine: str) -> None:
    versions = installed(engine_module(engine).LIBRARIES)
    assert "pyarrow" in versions
    # What translates is elsewhere, or nothing does.
    assert engine in ("fake", "imported", "server") or len(versions) > 1


@pytest.mark.parametrize("choice", ["stop", "reuse", "redo"])
def test_a_shard_that_was_begun_with_another_version(
    tmp_path: Path, upgrade: Callable[[str, str], None], choice: str
) -> None:
    """It has one version: it begins again, or the run stops, as with finished shards."""
    write_input(tmp_path / "in", rows=20)
    work = WorkDirectory("multiply", tmp_path / "work")
    key, other = shard_keys(STEP, ShardView(tmp_path / "in"))
    upgrade("ctranslate2", "1.0")
    write_begun(work.begun_file(key), Begun(own_versions(STEP.libraries), {"a batch": [1, 2]}))
    write_begun(work.begun_file(other), Begun({}, {"a batch": [1, 2]}))  # no library decides it
    assert work.begun_with(key, installed(STEP.libraries)) is None
    upgrade("ctranslate2", "2.0")
    if choice == "stop":
        message = r"1 of 2 shards were begun with ctranslate2 1.0 \(2.0 is installed\).*reuse or redo"
        with pytest.raises(InputError, match=message):
            run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path, choice))
        assert read_begun(work.begun_file(key)) is not None
    else:
        run_step(STEP, [tmp_path / "in"], tmp_path / "out", resources(tmp_path, choice))
        assert ShardDirectory(tmp_path / "out").description["libraries"]["ctranslate2"] == ["2.0"]
        assert not list(work.path.glob(f"*{SUFFIX}"))
