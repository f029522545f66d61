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
    found = {path: file.read_text(encoding="utf-8") for path, file in sorted(pages.items())}
    found["README.md"] = found["README.md"].replace("NAME", name, 1)
    stages = shipped(STAGES).read_text(encoding="utf-8")
    found[STAGES] = stages.replace(_CLONES_VERSIONS, str(VERSIONS))
    found |= {f"{made}/.gitignore": _KEEP_DIRECTORY for made in ("data", "models")}
    return found | {f"inputs/{stage}/.gitignore": _KEEP_LINKS for stage in LINKED}


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
    found = read_versions(project)
    if found is None or found[1] == _installed_versions():
        return
    raise InputError(
        f"written by paraforge {found[0]}; {versions.__version__} is installed and has other steps",
        project / VERSIONS,
        remedy="Run 'paraforge init --upgrade'.",
    )


def checksum(text: str) -> str:
    """Return the checksum of a text with all line ends as LF, because git may change them."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:16]
