"""The files of a new project, and the versions of the steps that it was made for."""

import hashlib
from pathlib import Path

import yaml

from paraforge import versions
from paraforge.base.errors import InputError
from paraforge.base.files import write_whole
from paraforge.base.yaml_text import read_yaml_text
from paraforge.interface.configuration.composition import shipped
from paraforge.interface.configuration.inputs import LINKED

VERSIONS = Path("versions.yaml")
"""Versions of the steps that the project was last brought up to, which DVC reads, and the checksum of the
dvc.yaml that was written for it. A clone has `pipeline/versions.py` in its place."""
STAGES = "dvc.yaml"
MY_BITEXT = "configs/corpus/my.yaml"
_CLONES_VERSIONS = "pipeline/versions.py"
_TEMPLATES = Path(__file__).parent / "templates"
_KEEP_DIRECTORY = "/*\n!.gitignore\n"
_KEEP_LINKS = "# Links to files of yours, made by the stage.\n*\n!.gitignore\n"


def project_files(name: str) -> dict[str, str]:
    """Return the text of every file of a new project but `params.yaml` and `versions.yaml`, by its path.

    name: of the project, for its README.
    """
    pages = {"inputs/README.md": shipped("inputs/README.md"), MY_BITEXT: _TEMPLATES / "my.yaml"}
    pages |= {".gitignore": _TEMPLATES / "gitignore.txt", "README.md": _TEMPLATES / "README.md"}
    found = {path: file.read_text(encoding="utf-8") for path, file in sorted(pages.items())}
    found["README.md"] = found["README.md"].replace("NAME", name, 1)
    stages = shipped(STAGES).read_text(encoding="utf-8")
    found[STAGES] = stages.replace(_CLONES_VERSIONS, str(VERSIONS))
    found |= {f"{made}/.gitignore": _KEEP_DIRECTORY for made in ("data", "models")}
    return found | {f"inputs/{stage}/.gitignore": _KEEP_LINKS for stage in LINKED}


def _installed_versions() -> dict[str, int]:
    """Return the number of each step of the program that runs."""
    return {name: number for name, number in vars(versions).items() if isinstance(number, int)}


def write_versions(project: Path, stages: str) -> None:
    """Write `versions.yaml`. stages: the text of dvc.yaml that was written for the project, or "" if the file
    is the user's."""
    content = {"paraforge": versions.__version__, **_installed_versions(), "stages": checksum(stages)}
    title = "# Written by 'paraforge init', not to be edited: a stage runs again when its number changes.\n"
    text = title + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=200)
    write_whole(project / VERSIONS, text)


def read_versions(project: Path) -> tuple[str, dict[str, int], str] | None:
    """Return the version of the program that a project was last brought up to, the steps' numbers, and the
    checksum of the dvc.yaml written for it; None where there is no `versions.yaml`: in a clone. Raises
    InputError if the file is damaged."""
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
    """Refuse a project whose stages DVC would record under the numbers of another version's steps. Raises
    InputError: that, or `versions.yaml` is damaged."""
    found = read_versions(project)
    if found is None or found[1] == _installed_versions():
        return
    raise InputError(
        f"written by paraforge {found[0]}; {versions.__version__} is installed and has other steps",
        project / VERSIONS,
        remedy="Run 'paraforge init --upgrade'.",
    )


def checksum(text: str) -> str:
    """Return the checksum of a text, in which line ends do not count, because git may change them."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:16]
