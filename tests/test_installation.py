"""Contents of sdist and wheel, and a project that runs with the wheel alone."""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from pathlib import Path

import pytest
import yaml

from paraforge.base.files import read_json
from paraforge.translation.models.fairseq_compat import NEWEST_PYTHON
from tests.project import ROOT

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
TREES = ("pipeline", "stages", "configs")


def outputs(root: Path) -> list[str]:
    """Patterns of the files and directories that 'dvc repro' writes, and of what DVC writes beside them."""
    stages = yaml.safe_load((root / "dvc.yaml").read_text(encoding="utf-8"))["stages"].values()
    bodies = [stage.get("do", stage) for stage in stages]
    written = [one for body in bodies for kind in ("outs", "metrics", "plots") for one in body.get(kind, ())]
    named = [next(iter(one)) if isinstance(one, dict) else one for one in written]
    patterns = {re.sub(r"\$\{[^}]*\}", "*", name) for name in named}
    beside = {f"{Path(name).parent.as_posix()}/.gitignore" for name in patterns}
    return ["dvc.lock", *sorted(patterns | beside)]


def repository(root: Path = ROOT) -> list[str]:
    """Every file of the repository, of a clone or of an unpacked sdist; of what git does not know, what a
    run has written is none."""
    if (root / ".git").exists():

        def listed(*options: str) -> list[str]:
            command = ["git", "ls-files", "-z", *options]
            return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split(
                "\0"
            )

        written = outputs(root)
        names = listed("--cached")
        for name in listed("--others", "--exclude-standard"):
            parts = [name, *(parent.as_posix() for parent in Path(name).parents)]
            if not any(fnmatch.fnmatchcase(part, pattern) for part in parts for pattern in written):
                names.append(name)
    else:
        (sources,) = root.glob("*.egg-info/SOURCES.txt")
        names = [name for name in sources.read_text(encoding="utf-8").splitlines() if "egg-info" not in name]
    return [name for name in names if name and (root / name).exists()]


def build(kind: str, source: Path, target: Path) -> str:
    command = [sys.executable, "-c", BUILD.format(kind=kind), str(target)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The unpacked sdist, the wheel that is built of it, and what the building printed."""
    source, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in repository():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name, follow_symlinks=False)
    said = build("sdist", source, dist)
    (archive,) = dist.glob("paraforge_corpus-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(dist)
    unpacked = dist / archive.name.removesuffix(".tar.gz")
    said += build("wheel", unpacked, dist)
    (wheel,) = dist.glob("paraforge_corpus-*.whl")
    return unpacked, wheel, said


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which sees the packages of this one, but not this checkout."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, symlinks=True)
    python = directory / "bin" / "python"
    install = ["-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([sys.executable, *install, str(built[1])], check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    # A .pth in a directory that is named by a .pth is not read, so that there are no editable packages.
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "others.pth").write_text("".join(f"{path}\n" for path in sorted(others)))
    # What numba has compiled of the same source here: it compares the source's size and time.
    for code in (ROOT / "pipeline").rglob("__pycache__/*.nb[ci]"):
        source = code.parents[1] / f"{code.name.partition('.')[0]}.py"
        if not source.exists():  # of a module that was moved since
            continue
        target = packages / "paraforge" / code.parent.relative_to(ROOT / "pipeline")
        target.mkdir(exist_ok=True)
        shutil.copy(code, target)
        shutil.copystat(source, target.parent / source.name)
    return directory


def run(environment: Path, *command: str, cwd: Path) -> str:
    """Run a program of an environment, as a user who has activated it."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}", "DVC_NO_ANALYTICS": "1"}
    program = str(environment / "bin" / command[0])
    done = subprocess.run(
        [program, *command[1:]], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def python(code: str, cwd: Path, environment: Path) -> str:
    return run(environment, "python", "-c", code, cwd=cwd)


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's directory, with packages of their own that are called as directories of this project are."""
    for name in ("pipeline", "stages", "configs_of_mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MINE = True\n")
    return tmp_path


def test_built_clone_packages_same_files(tmp_path: Path) -> None:
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    for pattern in outputs(tmp_path):
        name = pattern.replace("*", "word")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert repository(tmp_path) == ["dvc.yaml"]
    for name in ("metrics/notes.txt", "reports/mine.html", "stages/new.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert repository(tmp_path) == ["dvc.yaml", "metrics/notes.txt", "reports/mine.html", "stages/new.py"]


def test_build_has_no_warnings(built: tuple[Path, Path, str]) -> None:
    lines = [line for line in built[2].splitlines() if "byte-compiling is disabled" not in line]
    assert [line for line in lines if re.search(r"(?i)\bwarning\b|ignored|deprecat", line)] == []


def test_sdist_contains_repository(built: tuple[Path, Path, str]) -> None:
    unpacked = built[0]
    added = {"PKG-INFO", "setup.cfg"}
    there = {
        path.relative_to(unpacked).as_posix()
        for path in unpacked.rglob("*")
        if (path.is_file() or path.is_symlink()) and path.relative_to(unpacked).parts[0] != "build"
    }
    links = {name for name in there if (unpacked / name).is_symlink()}
    assert links == {name for name in repository() if (ROOT / name).is_symlink()}
    inside_links = {name for name in there if any(name.startswith(f"{link}/") for link in links)}
    assert {name for name in there - inside_links if "egg-info" not in name} - added == set(repository())


def test_sdist_tests_run(built: tuple[Path, Path, str]) -> None:
    unpacked = built[0]
    variables = {**os.environ, "PYTHONPATH": str(unpacked / ".mypy")}
    # Its files are those of the repository: some tests that read files of every kind are enough.
    names = ("interface/configuration/test_composition.py::test_all_choices_compose",
             "interface/configuration/test_composition.py::test_default_matches_repository",
             "test_docs.py", "test_layers.py")  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-n0", "-k", "not point_down and not text_exist"]
    done = subprocess.run(
        [*command, *(f"tests/{name}" for name in names)],
        cwd=unpacked,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert str(ROOT / "pipeline") not in done.stdout


def test_python_versions_are_consistent() -> None:
    def text(name: str) -> str:
        return (ROOT / name).read_text(encoding="utf-8")

    classified = re.findall(r"Programming Language :: Python :: (3\.\d+)", text("pyproject.toml"))
    assert re.findall(r"^VERSIONS +\?= (.*)$", text("Makefile"), re.M) == [" ".join(classified)]
    assert classified[-1] == ".".join(map(str, NEWEST_PYTHON))
    for name in ("README.md", "docs/installation.md"):
        ranges = re.findall(r"3\.\d+ to 3\.\d+", text(name))
        assert ranges and set(ranges) == {f"{classified[0]} to {classified[-1]}"}, name


def test_make_test_pins_checkers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    # Types of packages that need a newer Python than this one would be read wrongly.
    assert "python_version" not in settings
    pinned = re.findall(r"^(\w+)==[\d.]+$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
    assert {"mypy", "ruff"} <= {*pinned}


def test_user_packages_are_left_alone(installed: Path, user: Path) -> None:
    """Opening an exported model leaves them alone, too."""
    pytest.importorskip("sentence_transformers")
    code = """
import sys
from sentence_transformers.util import import_from_string
import paraforge
from paraforge.embeddings.sentence_transformers_module import ParaforgeEncoder
name = "paraforge.embeddings.sentence_transformers_module.ParaforgeEncoder"
assert import_from_string(name) is ParaforgeEncoder
assert "pipeline" not in sys.modules
import pipeline, stages
assert pipeline.MINE and stages.MINE
import paraforge.embeddings.trainer.model, paraforge.interface.cli, paraforge.stages.common
assert sys.modules["pipeline"] is pipeline
print(paraforge.__file__)
"""
    assert Path(python(code, user, installed).strip()).is_relative_to(installed)


def test_wheel_content(installed: Path) -> None:
    (packages,) = installed.glob("lib/python*/site-packages")
    assert not any((packages / name).exists() for name in TREES)
    wanted = {
        "paraforge/" + (name.removeprefix("pipeline/") if name.startswith("pipeline/") else name)
        for name in repository()
        if name.split("/")[0] in TREES and not (ROOT / name).is_symlink()
    }
    wanted |= {f"paraforge/{name}" for name in ("dvc.yaml", ".dvc/config", "inputs/README.md")}
    wanted |= {f"paraforge/docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    wanted.add("paraforge/CHANGELOG.md")  # errors quote it
    there = packages / "paraforge"
    found = {path.relative_to(packages).as_posix() for path in there.rglob("*") if path.is_file()}
    assert {name for name in found if "__pycache__" not in name} == wanted


def test_project_runs_outside_clone(installed: Path, tmp_path: Path) -> None:
    said = run(installed, "paraforge", "init", "my", cwd=tmp_path)
    assert "cd my && dvc repro" in said
    project = tmp_path / "my"
    small = ("translation=fake", "resources.workers=1", "embeddings.models.word.training.epochs=1")
    pairs = "ingest.sources=[{name: sample, format: sample, pairs: 300}]"
    assert "ingest.sources.0.pairs: " in run(installed, "paraforge", "configure", *small, pairs, cwd=project)
    run(installed, "python", "-m", "dvc", "repro", cwd=project)
    counts = read_json(project / "data" / "corpus" / "_manifest.json")["counts"]
    assert counts["rows_in"] == 300
    said = run(installed, "paraforge", "summary", cwd=project)
    assert f"{counts['kept']} paraphrase pairs made by back-translation" in said
    assert (project / "reports" / "report.html").is_file()
    status = run(installed, "python", "-m", "dvc", "status", cwd=project)
    assert "up to date" in status
    # What a user of a wheel is told to install is a wheel's.
    code = "from paraforge.base.errors import MissingPackageError as M; print(M('openai', 'server'))"
    assert "pip install 'paraforge-corpus[server]'" in python(code, project, installed)
    # Another version of a step: stages stop, --upgrade brings the project there.
    versions = next(installed.glob("lib/python*/site-packages/paraforge/versions.py"))
    text = versions.read_text(encoding="utf-8")
    number = yaml.safe_load((project / "versions.yaml").read_text(encoding="utf-8"))["SELECT"]
    versions.write_text(text.replace(f"SELECT = {number}", f"SELECT = {number + 1}"), encoding="utf-8")
    try:
        stage = (
            "import subprocess, sys; print(subprocess.run([sys.executable, '-m', 'paraforge.stages.select']))"
        )
        assert "returncode=2" in python(stage, project, installed)
        run(installed, "paraforge", "init", "--upgrade", cwd=project)
        said = run(installed, "python", "-m", "dvc", "status", cwd=project)
        assert "SELECT" in said and "ingest" not in said and "lexicon" not in said
    finally:
        versions.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("is_usable", [True, False], ids=["usable", "without pip, or of an older Python"])
def test_setup_recreates_broken_environment(tmp_path: Path, is_usable: bool) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    scripts = {".venv/bin/python": f"exit {int(not is_usable)}", "python": 'echo "$@" > made; exit 1'}
    for name in ("pyproject.toml", "setup.py", "constraints.txt", *scripts):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{scripts.get(name, '')}\n")
        path.chmod(0o755)
    subprocess.run(["make", "setup", "PYTHON=./python"], cwd=tmp_path, capture_output=True, check=False)
    assert (tmp_path / "made").exists() == (not is_usable)
    assert is_usable or (tmp_path / "made").read_text() == "-m venv --clear .venv\n"
