"""The files that DVC writes in place: a kill in that moment leaves a part of one, which DVC then refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

LOCK: Final = Path("dvc.lock")
"""Which stages were run with what; a stage that is missing in it runs again."""
RUNNING: Final = Path(".dvc") / "tmp" / "rwlock"
"""Which processes of DVC read and write what."""


def damaged(project: Path = Path()) -> dict[Path, str]:
    """Files of the project that DVC cannot read, and what is wrong with each.

    Other faults of a project (an invalid dvc.yaml, no DVC) are not these files' and are not in it.
    """
    found: dict[Path, str] = {}
    try:
        json.loads((project / RUNNING).read_bytes())
    except FileNotFoundError:
        pass
    except ValueError as error:
        found[RUNNING] = f"not JSON: {error}"
    if (project / LOCK).is_file():
        said = _complaint(project)
        if said is not None and LOCK.name in said:
            found[LOCK] = said
    return found


def set_aside(project: Path = Path()) -> list[tuple[Path, Path]]:
    """Rename the damaged files; gives old and new names.

    Nothing is lost with them: stages that run again find in `work/` what they had finished. To be called when
    DVC does not run.
    """
    names = [(path, path.with_name(f"{path.name}.damaged")) for path in damaged(project)]
    for path, aside in names:
        (project / path).replace(project / aside)
    return names


def _complaint(project: Path) -> str | None:
    """What ``dvc stage list``, which reads dvc.yaml and dvc.lock and changes nothing, fails with."""
    command = [sys.executable, "-m", "dvc", "stage", "list", "--name-only"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, errors="replace", check=False)
    return " ".join((done.stdout + done.stderr).split()) if done.returncode else None
