"""A package with a module in an entry point group, for separate processes."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = "import sys; from paraforge.interface.cli import main; sys.argv[0] = 'paraforge'; main()"
"""The program `paraforge`, for `python -c`."""


def install(place: Path, group: str, module: str, text: str) -> None:
    """Put a package with this module, named in the group `paraforge.GROUP`, into a directory."""
    (place / f"{module}.py").write_text(text)
    metadata = place / f"{module}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[paraforge.{group}]\n{module} = {module}\n")


def run(place: Path, code: str, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run code in a separate process with the packages installed in a directory."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(place), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return done
