"""A reader of another format is one file, and need not be in the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

READER = '''
from typing import Literal

import numpy as np
import pyarrow as pa

from paraforge.bitext.block import Block
from paraforge.bitext.source import ONLY, ColumnSource


class CsvSource(ColumnSource):
    """Columns with a divider of one's own."""

    format: Literal["divided"]
    divider: str = ";"

    def read(self, paths, reading):
        rows = [line.split(self.divider) for line in paths[ONLY].read_text().splitlines()]
        texts = {name: pa.array([row[place] for row in rows]) for name, place in self.columns.items()}
        yield Block(np.arange(1, len(rows) + 1), texts, np.zeros(len(rows), np.uint8))
'''
RUN = """
import json, sys
from pathlib import Path

from paraforge.bitext.ingest import ingest
from paraforge.configuration.reference import parameters_markdown
from paraforge.bitext.parameters import IngestParameters
from paraforge.shards.resources import Resources
from paraforge.shards.store import ShardDirectory

source = {"name": "a", "format": "divided", "path": sys.argv[1], "divider": "|"}
source["columns"] = {"source_text": 1, "reference": 0}
parameters = IngestParameters.model_validate({"sources": [source]})
ingest(parameters, Path("out"), Resources(work=Path("work"), workers=1))
rows = [row for table in ShardDirectory("out").tables() for row in table.to_pylist()]
print(json.dumps([[row["source_text"], row["reference"]] for row in rows]))
print("`divider`" in parameters_markdown())
"""


def test_a_reader_from_outside_the_package(tmp_path: Path) -> None:
    (tmp_path / "divided_reader.py").write_text(READER)
    metadata = tmp_path / "divided_reader-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: divided-reader\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[paraforge.readers]\ndivided = divided_reader\n")
    (tmp_path / "a.txt").write_text("Hello|Ahoj\nBye|Nazdar\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN, "a.txt"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows, documented = done.stdout.splitlines()
    assert json.loads(rows) == [["Ahoj", "Hello"], ["Nazdar", "Bye"]]
    assert documented == "True"


def test_every_reader_of_the_package_is_found_by_its_file() -> None:
    from paraforge.bitext import readers
    from paraforge.bitext.source import FileSource
    from paraforge.plugins import found_classes

    modules = {path.stem for path in Path(readers.__path__[0]).glob("[!_]*.py")}
    found = found_classes("paraforge.bitext.readers", FileSource)
    assert {one.__module__.rpartition(".")[2] for one in found} == modules
