"""Bringing a project of an earlier version up to date: its files, what DVC remembers of its runs,
and which stages ``dvc repro`` will run again, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from paraforge.base.errors import InputError, ParaforgeError
from paraforge.base.files import write_whole
from paraforge.base.shards.dvc_files import LOCK
from paraforge.interface.configuration import PARAMETERS, checks, read_yaml
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.diagnosis import Finding
from paraforge.interface.project.files import (
    VERSIONS,
    check_versions,
    checksum,
    former_checksums,
    installed_versions,
    is_clone,
    project_files,
    read_versions,
    write_versions,
)


def reasons(project: Path) -> dict[str, str]:
    """Why each stage that ran before will run again, in the order of `dvc.yaml`; changed files are DVC's to
    find. Empty where nothing has run, or nothing will. Raises InputError: a file is not YAML."""
    if not (project / LOCK).is_file():
        return {}
    ran = (read_yaml(project / LOCK)[1] or {}).get("stages") or {}
    content = read_yaml(project / PARAMETERS)[1]
    found: dict[str, str] = {}
    made: dict[Path, str] = {}
    described = read_yaml(project / "dvc.yaml")[1]["stages"]
    for name, (_, stage) in checks.stages_of(described, content):
        reason = _own_reason(stage, ran.get(name), content)
        if reason is None:
            read = [
                path
                for path in made
                if any(checks.reads(one, [path]) for one in checks.paths_of(stage, "deps"))
            ]
            reason = f"it reads what {made[read[0]]} makes" if read else None
        if reason is not None:
            found[name] = reason
            made |= dict.fromkeys(checks.paths_of(stage, "outs", "metrics", "plots"), name)
    return found


def missing_parameters(project: Path) -> list[str]:
    """Keys that stages of `dvc.yaml` depend on and `params.yaml` does not have, over which DVC would stop."""
    content = read_yaml(project / PARAMETERS)[1]
    stages = read_yaml(project / "dvc.yaml")[1]["stages"].values()
    keys = [key for stage in stages if "matrix" not in stage for key in stage.get("params", [])]
    named = dict.fromkeys(key for key in keys if isinstance(key, str))
    return [key for key in named if checks.value_at(content, key) is None]


def what_runs(project: Path) -> Iterator[str]:
    """The same in lines for a user."""
    if missing := missing_parameters(project):
        yield f"params.yaml does not have {', '.join(missing)}: run 'paraforge configure' first."
    found = reasons(project)
    if found:
        yield "'dvc repro' runs again:"
        yield from (f"  {name}: {reason}" for name, reason in found.items())
    elif (project / LOCK).is_file():
        yield "No stage runs again for this."


def project_findings(project: Path) -> Iterator[Finding]:
    """What the version of a project means for it, for ``paraforge doctor``."""
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


def _own_reason(stage: Mapping[str, Any], ran: Mapping[str, Any] | None, content: Any) -> str | None:
    if ran is None:
        return "it has not run yet"
    known = ran.get("params", {})
    numbers: dict[str, Any] = {}
    for file, values in known.items():
        numbers |= values if file != PARAMETERS.name else {}
    now = installed_versions()
    raised = [
        f"{key} {numbers.get(key, 'unknown')} -> {now.get(key)}"
        for entry in stage.get("params", [])
        if isinstance(entry, dict)
        for keys in entry.values()
        for key in keys
        if numbers.get(key) != now.get(key)
    ]
    if raised:
        return f"this version gives another result: step {', '.join(raised)}"
    changed = [
        key
        for key in stage.get("params", [])
        if isinstance(key, str) and checks.value_at(content, key) != known.get(PARAMETERS.name, {}).get(key)
    ]
    if changed:
        return f"its parameters changed: {', '.join(changed)}"
    command = ran.get("cmd")
    return None if command == stage["cmd"] else f"its command is another: {command!r} -> {stage['cmd']!r}"


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
