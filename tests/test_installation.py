"""The wheel: what is in it, what it is imported by, and that nothing of a user's gets in its way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.project import ROOT

pytestmark = pytest.mark.slow
PARTS = ("pipeline", "configs", "setup.py", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel installed, which is built from a copy of the sources."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name in PARTS:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(source / "dist")], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (source / "dist").glob("paraforge-*.whl")
    zipfile.ZipFile(wheel).extractall(target)  # a wheel of Python alone is installed by unpacking it
    return target


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's directory, with packages of their own that are called as directories of this project are."""
    for name in ("pipeline", "stages", "configs_of_mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MINE = True\n")
    return tmp_path


def python(code: str, cwd: Path, installed: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_users_own_packages_are_left_alone(installed: Path, user: Path) -> None:
    code = (
        "import paraforge, pipeline, stages, sys; assert pipeline.MINE and stages.MINE;"
        "import paraforge.embeddings.model, paraforge.cli; assert sys.modules['pipeline'] is pipeline;"
        "print(paraforge.__file__)"
    )
    assert Path(python(code, user, installed).strip()).is_relative_to(installed)


def test_what_is_in_the_wheel(installed: Path) -> None:
    assert not (installed / "pipeline").exists() and not (installed / "stages").exists()
    named = {path.relative_to(ROOT / "configs") for path in (ROOT / "configs").rglob("*.yaml")}
    there = installed / "paraforge" / "configs"
    assert {path.relative_to(there) for path in there.rglob("*.yaml")} == named
    data = [
        path for path in (ROOT / "pipeline").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    missing = [
        path for path in data if not (installed / "paraforge" / path.relative_to(ROOT / "pipeline")).exists()
    ]
    assert missing == []


def test_configurations_are_found_without_a_clone(installed: Path, user: Path) -> None:
    code = (
        "import sys; sys.argv = ['paraforge', 'configure', 'translation=fake'];"
        "from paraforge.cli import main; main()"
    )
    assert "params.yaml: translation=fake" in python(code, user, installed)
    assert (user / "params.yaml").is_file()


def test_a_model_that_was_exported_under_the_former_name_is_opened(installed: Path, user: Path) -> None:
    pytest.importorskip("sentence_transformers")
    code = """
import json, sys, paraforge
from pathlib import Path
from paraforge.embeddings.sentence_transformers_module import ParaforgeEncoder
from sentence_transformers.util import import_from_string
name = "pipeline.embeddings.sentence_transformers_module.ParaforgeEncoder"
assert import_from_string(name) is ParaforgeEncoder
assert "pipeline" not in sys.modules
"""
    python(code, user, installed)
