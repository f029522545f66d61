"""An importer is one file, and need not be in the package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.plugin import COMMAND, install, run

IMPORTER = """
from paraforge.translation.models.importers import ctranslate2

ORIGIN = "boxed"
WANTED = "box.txt (boxed)"


def recognises(path):
    return (path / "box.txt").is_file()


def languages_of(path, source_language, target_language):
    return tuple((path / "box.txt").read_text().split())


def convert_model(path, output, languages):
    return ctranslate2.convert_model(path / "inside", output, languages)
"""


def test_an_importer_from_outside_the_package(tiny_ctranslate2: Path, tmp_path: Path) -> None:
    install(tmp_path, "importers", "boxed", IMPORTER)
    shutil.copytree(tiny_ctranslate2, tmp_path / "box" / "inside")
    (tmp_path / "box" / "box.txt").write_text("sk en")
    run(tmp_path, COMMAND, "model", "import", "box", "box-nmt")
    description = json.loads((tmp_path / "box-nmt" / "model.json").read_text(encoding="utf-8"))
    assert (description["origin"], description["imported_from"]) == ("boxed", "box")
    assert (description["source_language"], description["target_language"]) == ("sk", "en")
    (tmp_path / "empty").mkdir()
    failed = run(tmp_path, COMMAND, "model", "import", "empty", "empty-nmt", expect=2)
    assert "box.txt (boxed)" in failed.stderr


def test_every_importer_of_the_package_is_found_by_its_file() -> None:
    from paraforge.base.plugins import found_modules
    from paraforge.translation.models import importers

    files = {path.stem for path in Path(importers.__path__[0]).glob("[!_]*.py")}
    assert set(found_modules(importers.__name__)) == files == set(importers._ORDER)
