"""Bringing a project of an earlier version up to date; which stages ``dvc repro`` will run, and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, ParaforgeError
from paraforge.base.files import write_whole
from paraforge.interface.configuration import PARAMETERS, read_yaml
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.diagnosis import Finding
from paraforge.interface.project.files import (
    VERSIONS,
    check_versions,
    checksum,
    installed_versions,
    is_clone,
    project_files,
    read_versions,
    write_versions,
)

LOCK = Path("dvc.lock")
_READS = "it reads what "
_HELD_OUT = Path("data/held_out")


def reasons(project: Path, content: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Why each stage will run again, in the order of ``dvc.yaml``, a stage for several models as
    ``embeddings@word``; changed files are DVC's to find. Empty where nothing has run, or nothing will.

    project: directory with dvc.yaml. content: the parameters, by default those of params.yaml.

    Raises InputError: a file is not YAML.
    """
    if not (project / LOCK).is_file():
        return {}
    ran = (read_yaml(project / LOCK)[1] or {}).get("stages") or {}
    content = read_yaml(project / PARAMETERS)[1] if content is None else content
    outs = {out["path"]: out.get("md5") for one in ran.values() for out in one.get("outs", [])}
    found: dict[str, str] = {}
    made: dict[Path, str] = {}
    # dvc.yaml lists a stage after those that it reads from.
    for name, stage in _stages_of(read_yaml(project / "dvc.yaml")[1]["stages"], content):
        reason = _own_reason(stage, ran.get(name), content, outs)
        if reason is None:
            read = [one for one in made if any(_overlap(one, path) for path in _paths_of(stage, "deps"))]
            reason = f"{_READS}{made[read[0]]} makes" if read else None
        if reason is not None:
            found[name] = reason
            made |= dict.fromkeys(_paths_of(stage, "outs", "metrics", "plots"), name)
            before = ran.get(name, {}).get("params", {}).get(PARAMETERS.name)
            split = any(value_at(one, "publish.splits") for one in (content, before))
            if not split and str(_HELD_OUT) in outs:
                made.pop(_HELD_OUT, None)  # it was empty and is
    return found


def stages_to_run(project: Path, content: Mapping[str, Any]) -> tuple[list[str], list[str]] | None:
    """The stages that run again for a reason of their own, and those that read what these make; None where
    nothing was run yet. See :func:`reasons`."""
    if not (project / LOCK).is_file():
        return None
    found = reasons(project, content)
    after = [name for name, reason in found.items() if reason.startswith(_READS)]
    return [name for name in found if name not in after], after


def missing_parameters(project: Path) -> list[str]:
    """Keys that stages of `dvc.yaml` depend on and `params.yaml` does not have, over which DVC would stop."""
    content = read_yaml(project / PARAMETERS)[1]
    stages = read_yaml(project / "dvc.yaml")[1]["stages"].values()
    keys = [key for stage in stages if "matrix" not in stage for key in stage.get("params", [])]
    named = dict.fromkeys(key for key in keys if isinstance(key, str))
    return [key for key in named if value_at(content, key) is None]


def what_runs(project: Path) -> Iterator[str]:
    """Which stages run again and why, in lines for a user."""
    if missing := missing_parameters(project):
        yield f"params.yaml does not have {', '.join(missing)}: run 'paraforge configure' first."
    found = reasons(project)
    if found:
        yield "'dvc repro' runs again:"
        yield from (f"  {name}: {reason}" for name, reason in found.items())
    elif (project / LOCK).is_file():
        yield "No stage runs again for this."


def _own_reason(
    stage: Mapping[str, Any], ran: Mapping[str, Any] | None, content: Any, outs: Mapping[str, Any]
) -> str | None:
    if ran is None:
        return "it has not run yet"
    known = ran.get("params", {})
    numbers = {
        key: n for file, values in known.items() if file != PARAMETERS.name for key, n in values.items()
    }
    now = installed_versions()
    listed = stage.get("params", [])
    steps = [key for one in listed if isinstance(one, dict) for keys in one.values() for key in keys]
    if raised := [key for key in steps if numbers.get(key) != now.get(key)]:
        shown = ", ".join(f"{key} {numbers.get(key, 'unknown')} -> {now.get(key)}" for key in raised)
        return f"this version gives another result: step {shown}"
    values = known.get(PARAMETERS.name, {})
    keys = [key for key in listed if isinstance(key, str)]
    if changed := [key for key in keys if value_at(content, key) != values.get(key)]:
        return f"its parameters changed: {', '.join(changed)}"
    if any(outs.get(one["path"], one.get("md5")) != one.get("md5") for one in ran.get("deps", [])):
        return "what it has read was made anew since"
    command = ran.get("cmd")
    return None if command == stage["cmd"] else f"its command is another: {command!r} -> {stage['cmd']!r}"


def _stages_of(described: Mapping[str, Any], content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, stage in described.items():
        if "matrix" not in stage:
            yield name, stage
            continue
        for item in content["embeddings"]["names"]:
            yield f"{name}@{item}", _filled(stage, item)


def _filled(value: Any, item: str) -> Any:
    if isinstance(value, dict):
        return {_filled(key, item): _filled(one, item) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, item) for one in value]
    return value.replace("${item.name}", item) if isinstance(value, str) else value


def value_at(content: Any, key: str) -> Any:
    """The value of a dotted key, None where there is none."""
    for name in key.split("."):
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _paths_of(stage: Mapping[str, Any], *kinds: str) -> list[Path]:
    entries = [entry for kind in kinds for entry in stage.get(kind, [])]
    return [Path(next(iter(entry)) if isinstance(entry, dict) else entry) for entry in entries]


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


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
