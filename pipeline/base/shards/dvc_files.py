"""The files that DVC writes in place: a kill in that moment leaves a part of one, which DVC then refuses."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import yaml

LOCK: Final = Path("dvc.lock")
"""Which stages were run with what; a stage that is missing in it runs again."""
RUNNING: Final = Path(".dvc") / "tmp" / "rwlock"
"""Which processes of DVC read and write what."""
_MD5: Final = re.compile(r"[0-9a-f]{32}(\.dir)?")
_SECONDS_OF_WRITING: Final = 0.2
_STAGE_FIELDS: Final = frozenset({"cmd", "deps", "params", "outs"})
_FIELDS: Final = frozenset({"path", "hash", "md5", "size", "nfiles", "isexec"})


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
            named = all(isinstance(entry["path"], str) for entry in entries)
            typed = all(
                isinstance(entry.get("hash", ""), str) and _MD5.fullmatch(entry.get("md5", "0" * 32))
                for entry in entries
            )
            flagged = all(isinstance(entry.get("isexec", True), bool) for entry in entries)
            sized = all(isinstance(entry.get(key, 0), int) for entry in entries for key in ("size", "nfiles"))
            known = all(isinstance(values, dict) for values in stage.get("params", {}).values())
            if not (
                isinstance(stage["cmd"], (str, list)) and named and typed and flagged and sized and known
            ):
                return False
            if not all(_FIELDS.issuperset(entry) for entry in entries) or not _STAGE_FIELDS.issuperset(stage):
                return False
    except FileNotFoundError:
        return True
    except (OSError, ValueError, yaml.YAMLError, AttributeError, KeyError, TypeError):
        return False
    return set(content) <= {"schema", "stages"}


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
