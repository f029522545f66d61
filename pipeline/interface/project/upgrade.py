"""Bringing a project of an earlier version up to date: its files, and what DVC remembers of its runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from paraforge.base.errors import InputError
from paraforge.base.files import write_whole
from paraforge.base.shards.dvc_files import LOCK
from paraforge.interface.project.files import (
    VERSIONS,
    checksum,
    former_checksums,
    is_clone,
    project_files,
    read_versions,
    write_versions,
)

# What DVC calls a stage's program, and the file of the steps' numbers: before and now.
_COMMAND: Final = re.compile(r"^(    cmd: python -m )stages\.", re.MULTILINE)
_NUMBERS: Final = re.compile(r"^      pipeline/versions\.py:$", re.MULTILINE)


@dataclass
class Upgrade:
    """What became of a project's files: paths that are new, were brought up to date, or are the user's and
    were kept although there is another text for them now; and whether `dvc.lock` was renamed in."""

    new: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    lock: bool = False


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
    written = former_checksums() if read is None else read[2]
    wanted = project_files(project.resolve().name)
    result = Upgrade()
    for path, text in wanted.items():
        _write(project, path, text, written, result)
    # A file of the user's has the checksum that it never had, so that it stays the user's.
    write_versions(
        project, {path: checksum(text) for path, text in wanted.items() if path not in result.kept}
    )
    result.lock = adopt_lock(project)
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


def adopt_lock(project: Path = Path()) -> bool:
    """Rename in `dvc.lock` what `dvc.yaml` calls otherwise than the version before, so that no stage runs
    again for its name; whether there was something to rename."""
    try:
        text = before = (project / LOCK).read_text(encoding="utf-8")
        stages = (project / "dvc.yaml").read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return False
    if "python -m paraforge.stages." in stages:
        text = _COMMAND.sub(r"\1paraforge.stages.", text)
    if f"- {VERSIONS}:" in stages:
        text = _NUMBERS.sub(f"      {VERSIONS}:", text)
    if text == before:
        return False
    write_whole(project / LOCK, text)
    return True
