"""Cached machine code is reused, but never with a changed constant or function."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "constants": "NUMBER = 1\nNUMBERS = np.array([10.0])\nWORDS = ('a', 'b')\n",
    "innermost": "@compiled\ndef innermost():\n    return 100.0\n",
    "inner": (
        "from innermost import innermost\n\n@compiled\ndef inner():\n    return behind() + innermost()\n\n"
        "@compiled\ndef behind():\n    return 1000.0\n"
    ),
    "outer": (
        "from constants import *\nfrom inner import inner\n\nDERIVED = len(WORDS) * 10000.0\n\n"
        "@compiled\ndef outer():\n    return NUMBER + NUMBERS[0] + inner() + DERIVED\n"
    ),
}
HEAD = "import numpy as np\nfrom paraforge.base.compiled import compiled\n"
PROGRAM = "from outer import outer\nprint(outer(), sum(outer.stats.cache_hits.values()))"


def result(directory: Path) -> list[str]:
    """Return the outermost function's result in a new process, and how often cached machine code was used."""
    environment = {**os.environ, "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Modules whose machine code is cached next to them."""
    directory = tmp_path_factory.mktemp("kept")
    for name, text in FILES.items():
        (directory / f"{name}.py").write_text(HEAD + text)
    assert result(directory) == ["21111.0", "0"]
    assert result(directory) == ["21111.0", "1"]
    return directory


@pytest.mark.full
@pytest.mark.parametrize(
    ("module", "old", "new", "expected"),
    [
        ("constants", "NUMBER = 1", "NUMBER = 2", "21112.0"),
        ("constants", "[10.0]", "[20.0]", "21121.0"),
        ("constants", "('a', 'b')", "('a',)", "11111.0"),
        ("innermost", "100.0", "200.0", "21211.0"),
        ("inner", "1000.0", "2000.0", "22111.0"),
    ],
)
def test_change_in_imported_module_recompiles(
    module: str, old: str, new: str, expected: str, kept: Path, tmp_path: Path
) -> None:
    directory = shutil.copytree(kept, tmp_path / "kept")
    assert result(directory) == ["21111.0", "1"]
    path = directory / f"{module}.py"
    path.write_text(path.read_text().replace(old, new))
    assert result(directory) == [expected, "0"]
