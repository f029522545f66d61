"""The files that DVC writes in place: a kill in that moment leaves a part of one, which DVC then refuses."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import yaml

LOCK: Final = Path("dvc.lock")
"""Which stages were run with what; a stage that is missing in it runs again."""
RUNNING: Final = Path(".dvc") / "tmp" / "rwlock"
"""Which processes of DVC read and write what."""
_MD5: Final = re.compile(r"[0-9a-f]{32}(\.dir)?")
_SECONDS_OF_WRITING: Final = 0.2
_STAGE_FIELDS: Final = frozenset({"cmd", "deps", "params", "outs"})
_FIELDS: Final = {
    **dict.fromkeys(("path", "relpath", "hash", "md5", "etag", "version_id"), str),
    "size": int,
    "nfiles": int,
    "isexec": bool,
    "cloud": dict,
    "files": list,
}
"""Of an output; those of remotes that keep versions have the last two."""


def repair(project: Path = Path()) -> list[tuple[Path, Path]]:
    """As :func:`set_aside`, in milliseconds where no file is damaged: for the start of every command. What
    looks damaged is asked of DVC, which may only just be writing it."""
    looks_whole = _is_json(project / RUNNING) and _looks_whole(project / LOCK)
    return [] if looks_whole else set_aside(project)


def broken_links(root: Path = Path("inputs")) -> list[Path]:
    """Links to files that are gone, over which DVC stops before a stage can say what is missing."""
    return sorted(path for path in root.glob("*/*") if path.is_symlink() and not path.exists())


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _looks_whole(lock: Path) -> bool:
    """Whether every entry of a dvc.lock has its fields, with values of their types."""
    try:
        content = yaml.load(lock.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both safe
        if content["schema"] != "2.0":
            return False
        for stage in content.get("stages", {}).values():
            entries = [*stage.get("deps", []), *stage.get("outs", [])]
            known = all(isinstance(values, dict) for values in stage.get("params", {}).values())
            whole = all(_is_whole(entry, "path") for entry in entries)
            if not (isinstance(stage["cmd"], (str, list)) and known and whole):
                return False
            if not _STAGE_FIELDS.issuperset(stage):
                return False
    except FileNotFoundError:
        return True
    except (OSError, ValueError, yaml.YAMLError, AttributeError, KeyError, TypeError):
        return False
    return set(content) <= {"schema", "stages"}


def _is_whole(entry: dict[str, Any], *required: str) -> bool:
    return (
        all(name in entry for name in required)
        and all(isinstance(value, _FIELDS[name]) for name, value in entry.items())
        and _MD5.fullmatch(entry.get("md5", "0" * 32)) is not None
        and len(entry.get("etag", "...")) >= 3
        and all(_is_whole(file, "relpath") for file in entry.get("files", []))
        and all(_is_whole(version) for version in entry.get("cloud", {}).values())
    )


def damaged(project: Path = Path()) -> dict[Path, str]:
    """Files of the project that DVC cannot read, and what is wrong with each. Other faults of a project (an
    invalid dvc.yaml, no DVC) are not these files' and are not in it."""
    found: dict[Path, str] = {}
    if not _is_json(project / RUNNING):
        time.sleep(_SECONDS_OF_WRITING)
        if not _is_json(project / RUNNING):
            found[RUNNING] = "not JSON"
    if (project / LOCK).is_file():
        said = _complaint(project)
        if said is not None and LOCK.name in said:
            found[LOCK] = said
    return found


def set_aside(project: Path = Path()) -> list[tuple[Path, Path]]:
    """Rename the damaged files; gives old and new names. Nothing is lost with them: stages that run again
    find in `work/` what they had finished. To be called when DVC does not run."""
    names = [(path, path.with_name(f"{path.name}.damaged")) for path in damaged(project)]
    for path, aside in names:
        (project / path).replace(project / aside)
    return names


def _complaint(project: Path) -> str | None:
    """What ``dvc stage list``, which reads dvc.yaml and dvc.lock and changes nothing, fails with."""
    command = [sys.executable, "-m", "dvc", "stage", "list", "--name-only"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, errors="replace", check=False)
    return " ".join((done.stdout + done.stderr).split()) if done.returncode else None
