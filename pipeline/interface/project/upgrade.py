"""Bringing a project of an earlier version up to date, and the parameters that changed since its last run."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError, ParaforgeError
from paraforge.base.files import write_whole
from paraforge.interface.configuration import PARAMETERS, read_yaml
from paraforge.interface.configuration.choices import stale_words
from paraforge.interface.configuration.diagnosis import Finding
from paraforge.interface.project.files import (
    STAGES,
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


def changed_stages(project: Path, content: Mapping[str, Any] | None = None) -> dict[str, list[str]] | None:
    """Find the stages that ``dvc repro`` runs for their parameters or the version of a step, each with the
    keys that differ from ``dvc.lock``; none for a stage that has not run. DVC finds changed files and the
    stages that depend on these: ``dvc status`` lists them.

    project: directory with dvc.yaml. content: the parameters; by default, those in params.yaml.

    Returns None if nothing has run yet. Raises InputError if a file is not YAML.
    """
    if not (project / LOCK).is_file():
        return None
    ran = (read_yaml(project / LOCK)[1] or {}).get("stages") or {}
    content = read_yaml(project / PARAMETERS)[1] if content is None else content
    now = installed_versions()
    found: dict[str, list[str]] = {}
    for stage, described in read_yaml(project / STAGES)[1]["stages"].items():
        items = [f"@{item}" for item in content["embeddings"]["names"]] if "matrix" in described else [""]
        for name in [stage + item for item in items]:
            known = ran.get(name, {}).get("params", {})
            changed = [
                key
                for file, values in known.items()
                for key, value in values.items()
                if value_at(content if file == PARAMETERS.name else now, key) != value
            ]
            if changed or name not in ran:
                found[name] = changed
    return found


def missing_parameters(project: Path) -> list[str]:
    """Keys that stages of `dvc.yaml` depend on and `params.yaml` does not have, over which DVC would stop."""
    content = read_yaml(project / PARAMETERS)[1]
    stages = read_yaml(project / STAGES)[1]["stages"].values()
    keys = [key for stage in stages if "matrix" not in stage for key in stage.get("params", [])]
    named = dict.fromkeys(key for key in keys if isinstance(key, str))
    return [key for key in named if value_at(content, key) is None]


def what_runs(project: Path) -> Iterator[str]:
    """Yield what a user has to know after an upgrade, in lines."""
    if missing := missing_parameters(project):
        yield f"params.yaml does not have {', '.join(missing)}: run 'paraforge configure' first."
    found = changed_stages(project)
    if found:
        yield "'dvc repro' runs again, with the stages that depend on them:"
        yield from (f"  {name}: {change_words(keys)}" for name, keys in found.items())
    elif found is not None:
        yield "No stage runs again for this."


def change_words(keys: Sequence[str]) -> str:
    """Say why a stage runs again; steps are in capitals, as in ``pipeline/versions.py``."""
    return f"changed: {', '.join(keys)}" if keys else "it has not run yet"


def value_at(content: Any, key: str) -> Any:
    """Return the value of a dotted key, None where there is none."""
    for name in key.split("."):
        content = content.get(name) if isinstance(content, dict) else None
    return content


def project_findings(project: Path) -> Iterator[Finding]:
    """Yield what the version of a project means for it, for ``paraforge doctor``; nothing where there is
    none."""
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
        for name, keys in (changed_stages(project) or {}).items():
            yield Finding("project", f"stage {name} runs again", "note", change_words(keys))
    except (ParaforgeError, LookupError, TypeError, AttributeError) as error:
        yield Finding("project", "stages", "note", f"cannot be compared with their last run: {error}")


def upgrade(project: Path) -> bool:
    """Bring dvc.yaml and the versions of the steps up to this version of Paraforge. All other files stay as
    they are, and so does a dvc.yaml that the user changed: this version's is written to `dvc.yaml.new`.

    Returns whether dvc.yaml is this version's now.

    Raises InputError if this is not a project, or if it is the clone that the program runs from.
    """
    file = project / STAGES
    if not file.is_file():
        raise InputError(
            "no project: there is no dvc.yaml", project, remedy="'paraforge init DIR' makes one."
        )
    if is_clone(project):
        raise InputError("this is the clone itself", project, remedy="'git pull' upgrades it.")
    try:
        read = read_versions(project)
    except InputError:
        read = None
    wanted = project_files(project.resolve().name)
    current = checksum(file.read_text(encoding="utf-8", errors="replace"))
    ours = current in (checksum(wanted[STAGES]), read[2] if read else None)
    write_whole(file if ours else project / f"{STAGES}.new", wanted[STAGES])
    for path in (one for one in wanted if one.startswith("inputs/")):
        if not (project / path).exists():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(project / path, wanted[path])
    write_versions(project, wanted[STAGES] if ours else "")
    return ours
