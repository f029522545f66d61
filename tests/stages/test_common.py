"""A stage fails if its parameters or input files change while it runs."""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from paraforge.base.errors import InputError
from paraforge.interface.configuration import Parameters
from paraforge.stages import common, embeddings, ingest
from tests.project import make_project, read_parameters, write_parameters

ROOT = Path(__file__).parents[2]
STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
WITH_FILES = [name for name, stage in STAGES.items() if f"inputs/{name}" in stage["deps"]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("made") / "project", pairs=100)


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, with one file that the user names for each stage."""
    shutil.copytree(made, tmp_path / "project", symlinks=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(sys, "argv", ["stage", "word"])

    def link(_: object, stages: list[str]) -> None:
        for name in stages:
            Path("inputs", name).mkdir(parents=True, exist_ok=True)
            link = Path("inputs", name, "000-named.txt")
            link.unlink(missing_ok=True)
            link.symlink_to(tmp_path / "named.txt")

    monkeypatch.setattr(common, "link_inputs", link)
    (tmp_path / "named.txt").write_text("one\n")
    return tmp_path / "project"


def run(stage: str, edit: Callable[[], object]) -> int:
    """Run a stage that does nothing and is edited meanwhile; its exit code."""
    try:
        common.run_stage(stage, lambda _: edit())
    except SystemExit as end:
        return int(str(end.code))
    return 0


def set_value(name: str) -> None:
    """Change whatever a dotted name of params.yaml stands for."""
    content = read_parameters(Path())
    *above, last = name.split(".")
    inner = content
    for key in above:
        inner = inner.setdefault(key, {})
    inner[last] = "changed"
    write_parameters(Path(), content)


@pytest.mark.parametrize("stage", STAGES)
def test_parameter_changed_during_run(stage: str, project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [name for name in STAGES[stage]["params"] if isinstance(name, str)]
    assert run(stage, lambda: None) == 0
    text = Path("params.yaml").read_text()
    for name in (name.replace("${item.name}", "word") for name in names):
        assert run(stage, lambda name=name: set_value(name)) == 2  # type: ignore[misc]
        assert f"params.yaml: {name} changed while the stage '{stage}' was running" in capfd.readouterr().err
        Path("params.yaml").write_text(text)


@pytest.mark.parametrize("stage", STAGES)
def test_other_stage_parameters_may_change(stage: str, project: Path) -> None:
    mine = {name.partition(".")[0] for name in STAGES[stage]["params"] if isinstance(name, str)}
    other = min(read_parameters(Path()).keys() - mine)
    assert run(stage, lambda: set_value(other)) == 0, other


def rewritten(path: Path) -> None:
    """Other content of the same size, with the time that the file had."""
    before = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("stage", "edit"),
    [
        *((stage, rewritten) for stage in WITH_FILES),
        (WITH_FILES[0], Path.unlink),
        (WITH_FILES[0], lambda path: path.write_text("longer\n")),
    ],
)
def test_file_changed_during_run(
    stage: str, edit: Callable[[Path], object], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    named = project.parent / "named.txt"
    assert run(stage, named.touch) == 0  # the same content
    assert run(stage, lambda: edit(named)) == 2
    said = capfd.readouterr().err
    assert f"named.txt: changed while the stage '{stage}' was running" in said
    assert "Run the same command again" in said


@pytest.mark.parametrize("small", [0, 100])
def test_file_content_counts_when_times_are_unreliable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """A small file is read again even if no time has changed; a large file only if a time has changed."""
    monkeypatch.setattr(common, "_SMALL", small)
    if small:
        monkeypatch.setattr(common, "_times", lambda _: (0, 0))
    path = tmp_path / "named.txt"
    path.write_text("one\n")
    before = common._look_at(path)
    assert not common._has_changed(path, before)
    first = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == first:  # a file system's clock has steps
        rewritten(path)
    assert common._has_changed(path, before)


def test_missing_file_has_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "named.txt"
    before = common._look_at(path)
    assert not common._has_changed(path, before)
    path.touch()
    assert common._has_changed(path, before)


def test_disk_error_of_stage_is_one_line(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert run("ingest", fail) == 1
    told = capfd.readouterr().err
    assert "No space left on device: free some space" in told and "Traceback" not in told
    assert "in fail" in Path("logs/ingest.log").read_text()


def test_unwritable_log_is_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs").touch()
    with pytest.raises(SystemExit, match="1"):
        common.run_stage("ingest", ingest.main)
    assert "File exists: 'logs'" in caplog.text


def test_failed_stage_keeps_finished_work(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    def main(parameters: Parameters) -> None:
        ingest.main(parameters)
        set_value("ingest.rows_per_shard")

    text = Path("params.yaml").read_text()
    with pytest.raises(SystemExit, match="2"):
        common.run_stage("ingest", main)
    finished = sorted(Path("work").rglob("*.parquet"))
    assert finished, list(Path().rglob("*"))
    Path("params.yaml").write_text(text)
    before = [path.stat().st_mtime_ns for path in finished]
    common.run_stage("ingest", ingest.main)
    assert [path.stat().st_mtime_ns for path in finished] == before
    assert "rows" in Path("logs/ingest.log").read_text()


def test_embeddings_stage_needs_model_name(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["stage"])
    with pytest.raises(InputError, match=r"there is no model ''; params\.yaml has word"):
        embeddings.main(common.parameters_of("embeddings"))
