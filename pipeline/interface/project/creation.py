"""Creates a project with its files, versions, repository and parameters; upgrades a project."""

from __future__ import annotations

import configparser
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from paraforge import versions
from paraforge.base.errors import InputError, MissingPackageError, ParaforgeError, one_line
from paraforge.base.files import write_whole
from paraforge.base.yaml_text import read_yaml_text
from paraforge.interface.configuration.choices import reconfigure
from paraforge.interface.configuration.composition import shipped, value_text
from paraforge.interface.configuration.inputs import LINKED

if TYPE_CHECKING:
    from paraforge.interface.project.bitext import Bitext

VERSIONS = Path("versions.yaml")
"""File with the step versions of the last upgrade, which DVC reads, and the checksum of the dvc.yaml that was
written then. A clone of the repository has `pipeline/versions.py` instead."""
STAGES = "dvc.yaml"
MY_BITEXT = "configs/corpus/my.yaml"
_CLONES_VERSIONS = "pipeline/versions.py"
_TEMPLATES = Path(__file__).parent / "templates"
_KEEP_DIRECTORY = "/*\n!.gitignore\n"
_KEEP_LINKS = "# Links to your files; the stage creates them.\n*\n!.gitignore\n"


def project_files(name: str) -> dict[str, str]:
    """Return the text of every file of a new project except `params.yaml` and `versions.yaml`, by path.

    name: the project's name, for its README.
    """
    pages = {"inputs/README.md": shipped("inputs/README.md"), MY_BITEXT: _TEMPLATES / "my.yaml"}
    pages |= {".gitignore": _TEMPLATES / "gitignore.txt", "README.md": _TEMPLATES / "README.md"}
    texts = {path: file.read_text(encoding="utf-8") for path, file in sorted(pages.items())}
    texts["README.md"] = texts["README.md"].replace("NAME", name, 1)
    stages = shipped(STAGES).read_text(encoding="utf-8")
    texts[STAGES] = stages.replace(_CLONES_VERSIONS, str(VERSIONS))
    texts |= {f"{directory}/.gitignore": _KEEP_DIRECTORY for directory in ("data", "models")}
    return texts | {f"inputs/{stage}/.gitignore": _KEEP_LINKS for stage in LINKED}


def _installed_versions() -> dict[str, int]:
    """Return the version number of each step of the installed program."""
    return {name: number for name, number in vars(versions).items() if isinstance(number, int)}


def write_versions(project: Path, stages: str) -> None:
    """Write `versions.yaml`.

    stages: text of the dvc.yaml that was written, or "" if the user's own dvc.yaml was kept.
    """
    content = {"paraforge": versions.__version__, **_installed_versions(), "stages": checksum(stages)}
    title = "# Written by 'paraforge init', not to be edited: a stage runs again when its number changes.\n"
    text = title + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=200)
    write_whole(project / VERSIONS, text)


def read_versions(project: Path) -> tuple[str, dict[str, int], str] | None:
    """Read `versions.yaml`: the program's version, the steps' version numbers, the checksum of dvc.yaml.

    Returns None if there is no such file, as in a clone. Raises InputError if the file is damaged.
    """
    path = project / VERSIONS
    if not path.is_file():
        return None
    try:
        content = read_yaml_text(path.read_text(encoding="utf-8"))
        numbers = {key: value for key, value in content.items() if isinstance(value, int)}
        return str(content["paraforge"]), numbers, str(content["stages"])
    except (yaml.YAMLError, UnicodeDecodeError, LookupError, TypeError, AttributeError, ValueError) as error:
        remedy = "Run 'paraforge init --upgrade' to write it again."
        raise InputError("not written by 'paraforge init'", path, remedy=remedy) from error


def check_versions(project: Path = Path()) -> None:
    """Check that `versions.yaml` has the step versions of the installed program, as DVC records them.

    Raises InputError if they differ, or if the file is damaged.
    """
    recorded = read_versions(project)
    if recorded is None or recorded[1] == _installed_versions():
        return
    raise InputError(
        f"written by paraforge {recorded[0]}, but {versions.__version__} is installed and has other steps",
        project / VERSIONS,
        remedy="Run 'paraforge init --upgrade'.",
    )


def checksum(text: str) -> str:
    """Return the checksum of a text with all line ends as LF, because git may change them."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:16]


_MOST_NAMED = 5
# This file exists while a project is being created. If it is there, the same command continues.
_UNFINISHED = ".paraforge-init"


def make_project(directory: Path, bitext: Bitext | None = None) -> None:
    """Create a DVC project in a directory, in a git repository if git is installed.

    directory: does not exist yet, or has no files except ``.git``, or is left over from a killed call. In the
        last case the call continues, and does not overwrite the project's files that exist.
    bitext: the texts that the project starts with; None for the embedded sample.

    Raises:
        InputError: the directory has files, or a name that DVC cannot use.
        MissingPackageError: DVC is not installed.
        ParaforgeError: git or DVC failed.
    """
    if importlib.util.find_spec("dvc") is None:
        raise MissingPackageError("dvc", "pipeline")
    if directory.exists() and not directory.is_dir():
        raise InputError("this is a file", directory)
    mark = directory / _UNFINISHED
    existing = sorted(path.name for path in directory.glob("*") if path.name != ".git")
    if existing and not mark.exists():
        more = f" and {len(existing) - _MOST_NAMED} more" if len(existing) > _MOST_NAMED else ""
        raise InputError(
            f"not empty: it has {', '.join(existing[:_MOST_NAMED])}{more}",
            directory,
            remedy="Use a new directory. 'paraforge init --upgrade' updates a project.",
        )
    if {"{", "}"} & {*str(directory.resolve())}:
        raise InputError("DVC fails in paths with { or }", directory.resolve(), remedy="Use another name.")
    str(directory.resolve()).encode()  # git, DVC and params.yaml need UTF-8: see names_in_utf8
    name = directory.resolve().name[:200]  # as long as publish.name may be
    directory.mkdir(parents=True, exist_ok=True)
    mark.touch()
    _set_up_dvc(directory, ["--no-scm"] if shutil.which("git") is None else _set_up_git(directory))
    files = project_files(name)
    for path, text in files.items():
        if not (directory / path).exists():
            write_whole(directory / path, text)
    write_versions(directory, files[STAGES])
    if bitext is not None:
        write_whole(directory / MY_BITEXT, bitext.yaml())
    choices = [*(bitext.choices if bitext else []), f"publish.name={value_text(name)}"]
    configuration = reconfigure(directory / "configs", choices, directory / "params.yaml")
    write_whole(directory / "params.yaml", configuration.text)
    mark.unlink(missing_ok=True)


def upgrade_project(project: Path) -> bool:
    """Update dvc.yaml and the step versions to this version of Paraforge; change no other existing file.

    A dvc.yaml that the user edited is not changed either: the new one is written to `dvc.yaml.new`.
    Returns whether dvc.yaml was updated.

    Raises InputError if this is not a Paraforge project, or if it is the clone that the program runs from.
    """
    file = project / STAGES
    if not file.is_file():
        raise InputError(
            "not a project: there is no dvc.yaml", project, remedy="'paraforge init DIR' creates one."
        )
    if shipped(STAGES).resolve() == file.resolve():
        raise InputError("this is the clone itself", project, remedy="'git pull' upgrades it.")
    text = file.read_text(encoding="utf-8", errors="replace")
    if not any(name in text for name in ("paraforge", "stages.ingest")):
        raise InputError("not a Paraforge project", file, remedy="'paraforge init DIR' creates one.")
    try:
        recorded = read_versions(project)
    except InputError:
        recorded = None
    files = project_files(project.resolve().name)
    is_unedited = checksum(text) in (checksum(files[STAGES]), recorded[2] if recorded else None)
    write_whole(file if is_unedited else project / f"{STAGES}.new", files[STAGES])
    for path in (file for file in files if file.startswith("inputs/")):
        if not (project / path).exists():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(project / path, files[path])
    write_versions(project, files[STAGES] if is_unedited else "")
    return is_unedited


def _set_up_git(directory: Path) -> list[str]:
    """Make the directory a git repository unless it is inside one. Returns the options for ``dvc init``."""
    inside = subprocess.run(
        ["git", "rev-parse", "--show-prefix"], cwd=directory, capture_output=True, check=False
    )
    if inside.returncode == 0:
        return ["--subdir"] if inside.stdout.strip() else []
    _run(["git", "init", "--quiet"], directory)
    return []


def _set_up_dvc(directory: Path, options: list[str]) -> None:
    _run([sys.executable, "-m", "dvc", "init", "--force", *options], directory)
    settings = configparser.ConfigParser(interpolation=None)
    for path in (directory / ".dvc" / "config", shipped(".dvc/config")):
        settings.read(path, encoding="utf-8")
    with (directory / ".dvc" / "config").open("w", encoding="utf-8") as file:
        settings.write(file)


def _run(command: list[str], directory: Path) -> None:
    process = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, errors="replace", check=False
    )
    if process.returncode != 0:
        output = one_line(process.stderr or process.stdout)
        command_text = " ".join(command[-4:]).removeprefix("-m ")
        raise ParaforgeError(f"'{command_text}' failed in {directory}: {output}")
