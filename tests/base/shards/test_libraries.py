"""Shards say which versions of libraries made them, and a mixture is warned of."""

import importlib.metadata
from dataclasses import replace
from pathlib import Path

import pytest

from paraforge.base.shards.libraries import described, installed, is_made_otherwise, own_versions
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import compute_shard, run_step, shard_keys
from paraforge.base.shards.store import ShardDirectory, ShardView
from paraforge.base.shards.work import WorkDirectory
from paraforge.translation.engines import ENGINES, engine_module
from tests.base.shards.steps import multiply_step, write_input

STEP = replace(multiply_step(3), libraries=("ctranslate2", "sentencepiece"))


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions of distributions that seem to be installed."""
    pretended: dict[str, str] = {}
    version = importlib.metadata.version
    monkeypatch.setattr(
        "paraforge.base.shards.libraries.version", lambda name: pretended.get(name) or version(name)
    )
    return pretended


def resources(place: Path) -> Resources:
    return Resources.model_validate({"workers": 1, "work": place / "work"})


@pytest.mark.parametrize("library", ["ctranslate2", "sentencepiece", "pyarrow"])
def test_an_upgrade_in_mid_run(
    tmp_path: Path, upgrade: dict[str, str], library: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is finished is used, the index names both versions, and one warning says so."""
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


def test_a_worker_records_its_own_versions(tmp_path: Path, upgrade: dict[str, str]) -> None:
    write_input(tmp_path / "in", rows=10)
    work = WorkDirectory("multiply", tmp_path / "work")
    (key,) = shard_keys(STEP, ShardView(tmp_path / "in"))
    upgrade["sentencepiece"] = "0.1"
    compute_shard(STEP, key, [tmp_path / "in" / "shard-00000.parquet"], tmp_path / "work")
    assert work.made_with(key)["sentencepiece"] == "0.1"


@pytest.mark.parametrize(
    ("made", "otherwise"),
    [({"a": "1", "b": "2"}, ""), ({"a": "1", "b": "2", "c": "9"}, ""),
     ({"a": "1", "b": "3"}, "b 3 (2 is installed)"), ({"a": "1"}, "b unknown (2 is installed)"),
     ({}, "a unknown (1 is installed), b unknown (2 is installed)")],
)  # fmt: skip
def test_one_other_version_is_enough(made: dict[str, str], otherwise: str) -> None:
    wanted = {"a": "1", "b": "2"}
    assert is_made_otherwise(made, wanted) is bool(otherwise)
    assert described([made], wanted) == otherwise


def test_a_library_that_is_not_installed_is_none() -> None:
    assert own_versions(["no-such-library"]) == {"no-such-library": "none"}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_libraries_of_engines_are_distributions(engine: str) -> None:
    versions = installed(engine_module(engine).LIBRARIES)
    assert "pyarrow" in versions
    # What translates is elsewhere, or nothing does.
    assert engine in ("fake", "imported", "server") or len(versions) > 1
