"""A project for tests of whole stages: a copy of the code, small parameters, and the fake engine."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

from paraforge.interface.configuration.composition import compose

ROOT = Path(__file__).resolve().parent.parent
CHOICES = ("translation=fake", "corpus=sample")
TRAINED = "paragram=corpus"
"""Has the stage paragram train: what the default takes a moment for can be interrupted and resumed."""


def make_project(directory: Path, *overrides: str, pairs: int = 1500) -> Path:
    """Make ``directory`` a DVC project with small parameters. Some sentences fail and some hypotheses are
    defective, so that every count is above zero."""
    copy_code(directory)
    parameters = deepcopy(_composed(*CHOICES, *overrides))
    parameters["ingest"]["sources"][0]["pairs"] = pairs
    parameters["ingest"]["rows_per_shard"] = 200
    parameters["translate"]["fake"] = {"defects": 0.05, "fail_pattern": "nov"}
    parameters["paragram"]["dimension"] = 16
    parameters["resources"]["workers"] = 1
    write_parameters(directory, parameters)
    return directory


@cache
def _composed(*overrides: str) -> dict[str, Any]:
    return compose(ROOT / "configs", overrides)


def make_finished(directory: Path) -> None:
    """Make a project that DVC has run up to the corpus."""
    make_project(directory, TRAINED)
    run("dvc", "repro", "publish", cwd=directory)


def copy_code(directory: Path) -> None:
    """Make a DVC project that imports the library from this checkout, so that compiled code is reused."""
    for name in ("configs", "inputs"):
        shutil.copytree(
            ROOT / name, directory / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    (directory / "pipeline").mkdir()
    shutil.copy(ROOT / "pipeline" / "versions.py", directory / "pipeline")
    shutil.copy(ROOT / "dvc.yaml", directory)
    # As 'dvc init --no-scm' leaves it, with this repository's settings.
    (directory / ".dvc" / "tmp").mkdir(parents=True)
    settings = (ROOT / ".dvc" / "config").read_text(encoding="utf-8")
    (directory / ".dvc" / "config").write_text(settings.replace("[core]", "[core]\n    no_scm = True"))
    (directory / ".dvcignore").touch()


def read_parameters(directory: Path) -> dict[str, Any]:
    """Read params.yaml."""
    content = yaml.safe_load((directory / "params.yaml").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def write_parameters(directory: Path, parameters: dict[str, Any]) -> None:
    """Write params.yaml."""
    (directory / "params.yaml").write_text(yaml.safe_dump(parameters), encoding="utf-8")


def environment() -> dict[str, str]:
    """The environment of the tests, with the interpreter's scripts first on PATH."""
    scripts = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "DVC_NO_ANALYTICS": "1"}


def project_environment(directory: Path) -> dict[str, str]:
    """The environment in which ``python -m paraforge.stages.X`` runs the code of this checkout."""
    path = os.pathsep.join([str(ROOT / ".mypy"), str(directory)])
    return {**environment(), "PYTHONPATH": path, "COLUMNS": "200"}


@cache
def stage_names() -> dict[str, list[str]]:
    """The stages of dvc.yaml in order, with the arguments that tests call them with."""
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return {name: ["word"] if "matrix" in stage else [] for name, stage in stages.items()}


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A directory that is made once for all test processes. Its content is only read or copied."""
    base = factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{directory}.lock"):
        if not Path(f"{directory}.made").is_file():
            shutil.rmtree(directory, ignore_errors=True)
            make(directory)
            Path(f"{directory}.made").touch()
    return directory


def run(*command: str, cwd: Path, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and check its exit code; None for any."""
    result = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
    if expect is not None:
        assert result.returncode == expect, (
            f"{command}: {result.returncode}\n{result.stdout}\n{result.stderr}"
        )
    return result


def digests(directory: Path) -> dict[str, str]:
    """SHA-256 of every file below a directory, by path."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
