"""A reader of another format is one file, and need not be in the package."""

from __future__ import annotations

import json
from pathlib import Path

from tests.plugin import install, run

READER = '''
from typing import Literal

import numpy as np
import pyarrow as pa

from paraforge.intake.bitext.block import Block
from paraforge.intake.bitext.source import ONLY, ColumnSource


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

from paraforge.intake.bitext.ingest import ingest
from paraforge.interface.configuration.reference import parameters_markdown
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory

source = {"name": "a", "format": "divided", "path": sys.argv[1], "divider": "|"}
source["columns"] = {"source_text": 1, "reference": 0}
parameters = IngestParameters.model_validate({"sources": [source]})
ingest(parameters, Path("out"), Resources(work=Path("work"), workers=1))
rows = [row for table in ShardDirectory("out").tables() for row in table.to_pylist()]
print(json.dumps([[row["source_text"], row["reference"]] for row in rows]))
print("`divider`" in parameters_markdown())
"""


def test_a_reader_from_outside_the_package(tmp_path: Path) -> None:
    install(tmp_path, "readers", "divided", READER)
    (tmp_path / "a.txt").write_text("Hello|Ahoj\nBye|Nazdar\n")
    rows, documented = run(tmp_path, RUN, "a.txt").stdout.splitlines()
    assert json.loads(rows) == [["Ahoj", "Hello"], ["Nazdar", "Bye"]]
    assert documented == "True"


def test_every_reader_of_the_package_is_found_by_its_file() -> None:
    from paraforge.base.plugins import found_classes
    from paraforge.intake.bitext import readers
    from paraforge.intake.bitext.source import FileSource

    modules = {path.stem for path in Path(readers.__path__[0]).glob("[!_]*.py")}
    found = found_classes("paraforge.intake.bitext.readers", FileSource)
    assert {one.__module__.rpartition(".")[2] for one in found} == modules
