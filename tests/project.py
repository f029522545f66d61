"""A project of its own for tests that run whole stages: a copy of the code, small parameters, the fake engine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from pipeline.configuration.composition import compose

ROOT = Path(__file__).resolve().parent.parent
SMALL = ("translation=fake", "corpus=sample", "resources.workers=1")


def make_project(directory: Path, *overrides: str) -> Path:
    """Copy the code into ``directory``, make it a DVC project and write its params.yaml."""
    for name in ("pipeline", "stages", "configs"):
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "dvc.yaml", directory)
    (directory / "params.yaml").write_text(compose(ROOT / "configs", [*SMALL, *overrides]), encoding="utf-8")
    run("dvc", "init", "--no-scm", "--quiet", cwd=directory)
    return directory


def environment() -> dict[str, str]:
    """The tests' environment with the interpreter's scripts first on PATH and nothing written beside the code."""
    scripts = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "DVC_NO_ANALYTICS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run(*command: str, cwd: Path, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and check its exit code (None for any)."""
    result = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
    if expect is not None:
        assert result.returncode == expect, f"{command}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def digests(directory: Path) -> dict[str, str]:
    """SHA-256 of every file below a directory, by its path."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
