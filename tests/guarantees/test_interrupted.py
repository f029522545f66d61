"""A stage that is killed or cannot write leaves no unfinished file, and the next run gives the same bytes."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from paraforge.base.files import read_json
from tests.guarantees.stages import RENAMES, STAGES, copy, outputs, remove, result
from tests.project import ROOT, project_environment, stage_names

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
COUNT = "renames"
HOOK = Path(__file__).parent / "hook"


def run(
    project: Path, stage: str, kill_after: int | None = None, start: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a stage to its end, or kill it before a rename."""
    (project / COUNT).unlink(missing_ok=True)
    environment = project_environment(project)
    environment["PYTHONPATH"] = f"{HOOK}:{environment['PYTHONPATH']}:{ROOT}"
    environment["COUNT_RENAMES_IN"] = str(project / COUNT)
    if kill_after is not None:
        environment["KILL_AFTER_RENAMES"] = str(kill_after)
    command = [sys.executable, "-m", f"paraforge.stages.{stage}", *stage_names()[stage]]
    return subprocess.run(
        command,
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        preexec_fn=start,
    )


def check_whole_or_missing(project: Path, stage: str, wanted: dict[str, dict[str, str]]) -> None:
    """Check that each output has all of its files or does not exist."""
    for name, files in result(project, stage).items():
        assert files in ({}, wanted[name]), f"{name} is half written"


def check_resumed(project: Path, stage: str, wanted: dict[str, dict[str, str]]) -> None:
    """Check that another run gives the same files and leaves nothing else."""
    check_whole_or_missing(project, stage, wanted)
    again = run(project, stage)
    assert again.returncode == 0, again.stderr
    assert result(project, stage) == wanted
    for name in outputs(stage):
        beside = {path.name for path in (project / name).parent.iterdir()}
        assert not [found for found in beside if found.startswith(".")], f"left beside {name}"


@pytest.mark.parametrize("left", ["half", 2, 3])
@pytest.mark.parametrize("stage", STAGES)
def test_killed_stage_resumes_to_same_bytes(
    finished: Path, tmp_path: Path, stage: str, left: str | int
) -> None:
    """The stage is killed before the middle one of its renames, and before the third and the second last,
    when an output may have only some of its files.
    """
    project = copy(finished, tmp_path / "project", work=False)
    remove(project, stage)
    renames = read_json(finished / RENAMES)[stage]
    killed = run(project, stage, kill_after=max(0, renames // 2 if left == "half" else renames - int(left)))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    check_resumed(project, stage, result(finished, stage))


@pytest.mark.parametrize("stage", STAGES)
def test_disk_full_during_stage(finished: Path, tmp_path: Path, stage: str) -> None:
    """Files are limited to half the length of the longest one that the stage writes."""
    project = copy(finished, tmp_path / "project", work=False)
    wanted = result(finished, stage)
    remove(project, stage)
    files = [path for name in outputs(stage) for path in _files(finished / name)]
    limit = max(path.stat().st_size for path in files) // 2

    def start() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    failed = run(project, stage, start=start)
    assert failed.returncode in (1, 2, 3), failed.stderr
    assert "Traceback" not in failed.stderr
    check_resumed(project, stage, wanted)


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
