"""Bringing a project of an earlier version up to date."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paraforge.base.errors import InputError, ParaforgeError
from paraforge.base.files import write_whole
from paraforge.interface.configuration import PARAMETERS
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.diagnosis import Finding
from paraforge.interface.project.files import (
    VERSIONS,
    check_versions,
    checksum,
    is_clone,
    project_files,
    read_versions,
    write_versions,
)
from paraforge.interface.project.stages import missing_parameters, reasons


def project_findings(project: Path) -> Iterator[Finding]:
    """What the version of a project means for it, for ``paraforge doctor``; nothing where there is none."""
    if not all((project / name).is_file() for name in ("dvc.yaml", PARAMETERS)):
        return
    try:
        check_versions(project)
    except InputError as error:
        yield Finding("project", str(VERSIONS), "broken", error.message, "paraforge init --upgrade")
    try:
        if stale := stale_words(project):
            yield Finding("project", "choices", "note", stale, "paraforge configure")
        if missing := missing_parameters(project):
            said = f"not there: {', '.join(missing)}"
            yield Finding("project", str(PARAMETERS), "broken", said, "paraforge configure")
        for name, reason in reasons(project).items():
            yield Finding("project", f"stage {name} runs again", "note", reason)
    except (ParaforgeError, LookupError, TypeError, AttributeError) as error:
        yield Finding("project", "stages", "note", f"cannot be compared with their last run: {error}")


@dataclass
class Upgrade:
    """What became of a project's files: paths that are new, were brought up to date, or are the user's and
    were kept although there is another text for them now."""

    new: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def upgrade(project: Path) -> Upgrade:
    """Write what this version has for a project that the user has not changed or deleted; nothing else.

    Raises InputError: this is no project, or it is the clone that the program runs from.
    """
    if not (project / "dvc.yaml").is_file():
        raise InputError(
            "no project: there is no dvc.yaml", project, remedy="'paraforge init DIR' makes one."
        )
    if is_clone(project):
        raise InputError("this is the clone itself", project, remedy="'git pull' upgrades it.")
    try:
        read = read_versions(project)
    except InputError:
        read = None
    written = {} if read is None else read[2]
    wanted = project_files(project.resolve().name)
    result = Upgrade()
    for path, text in wanted.items():
        _write(project, path, text, written, result)
    # A file of the user's has the checksum that it never had, so that it stays the user's.
    write_versions(
        project, {path: checksum(text) for path, text in wanted.items() if path not in result.kept}
    )
    return result


def _write(project: Path, path: str, text: str, written: Mapping[str, str], result: Upgrade) -> None:
    file = project / path
    if not file.exists():
        if path in written and read_versions(project) is not None:
            return  # deleted by the user
        file.parent.mkdir(parents=True, exist_ok=True)
        result.new.append(path)
    else:
        try:
            current = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            current = ""
        if checksum(current) == checksum(text):
            return
        if checksum(current) != written.get(path):
            result.kept.append(path)
            return
        result.updated.append(path)
    write_whole(file, text)
