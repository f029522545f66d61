"""Which stages ``dvc repro`` will run in a project that another version made, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, ParaforgeError
from paraforge.base.shards.dvc_files import LOCK
from paraforge.interface.configuration import PARAMETERS, checks, read_yaml
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.diagnosis import Finding
from paraforge.interface.project.files import VERSIONS, check_versions, installed_versions


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


def what_runs(project: Path) -> Iterator[str]:
    """The same in lines for a user."""
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
