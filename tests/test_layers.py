"""Packages import downwards only, in the order that pyproject.toml declares and the docs show."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.project import ROOT, run


def layers() -> list[str]:
    """Packages and modules, top to bottom."""
    declared = (
        (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("\nlayers = [")[2].partition("]")[0]
    )
    return re.findall(r'"paraforge\.(\w+)"', declared)


def test_imports_point_down() -> None:
    run(str(Path(sys.executable).parent / "lint-imports"), "--no-cache", cwd=ROOT)


def test_every_package_has_its_place() -> None:
    packages = {path.parent.name for path in (ROOT / "pipeline").glob("*/__init__.py")}
    assert packages <= set(layers())


def test_the_picture_has_the_same_order() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = text.partition("```text\n")[2].partition("```")[0]
    shown = [line.split("/")[0].strip() for line in picture.splitlines() if line and not line.startswith(" ")]
    assert shown == [name for name in layers() if name != "loading"]
