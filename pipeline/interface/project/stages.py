"""Which stages ``dvc repro`` will run, and why."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paraforge.base.shards.dvc_files import LOCK
from paraforge.interface.configuration import PARAMETERS, read_yaml
from paraforge.interface.project.files import installed_versions

_READS = "it reads what "


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
