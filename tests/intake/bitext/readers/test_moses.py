"""Moses pairs, and a format of another package."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.readers.moses import MosesSource
from paraforge.intake.bitext.source import Block
from tests.intake.bitext.helpers import rows_of, write
from tests.plugin import install, run


def blocks(paths: dict[str, Path], reading: Reading) -> Iterator[Block]:
    named = {column: str(path) for column, path in paths.items()}
    return MosesSource(format="moses", name="x", paths=named).read(paths, reading)


def test_rows(tmp_path: Path) -> None:
    paths = {
        "source_text": write(tmp_path / "a.cs.gz", "Ahoj\n\n"),
        "reference": write(tmp_path / "a.en", "Hello\nHi"),
    }
    assert rows_of(blocks(paths, Reading())) == [(1, "Ahoj", "Hello", None), (2, "", "Hi", None)]


def test_rejection_reason_is_that_of_first_bad_side(tmp_path: Path) -> None:
    paths = {
        "source_text": write(tmp_path / "a.cs", b"a\nb\xff\nc\n"),
        "reference": write(tmp_path / "a.en", f"a\n{'b' * 2000}\n{'c' * 2000}\n"),
    }
    rows = rows_of(blocks(paths, Reading(strict=False, max_line_bytes=1500)))
    assert [row[-1] for row in rows] == [None, "invalid_utf8", "overlong_line"]


def test_scores_in_separate_file(tmp_path: Path) -> None:
    paths = {
        "reference": write(tmp_path / "r", "a\nb\nc\n"),
        "translation": write(tmp_path / "t", "A\nB\nC\n"),
        "score": write(tmp_path / "s", "0.5\n\n -1e-3 \n"),
    }
    (block,) = blocks(paths, Reading())
    assert block.scores is not None and list(block.texts) == ["reference", "translation"]
    assert block.scores.to_pylist() == [0.5, None, pytest.approx(-1e-3)]


def test_unequal_line_counts_are_always_an_error(tmp_path: Path) -> None:
    paths = {"source_text": write(tmp_path / "a.cs", "a\nb\n"), "reference": write(tmp_path / "a.en", "a\n")}
    with pytest.raises(InputError, match=r"a\.en:1: the parallel files do not have the same number of lines"):
        rows_of(blocks(paths, Reading(strict=False)))


READER = '''
from typing import Literal

import numpy as np
import pyarrow as pa

from paraforge.intake.bitext.source import ONLY, Block, ColumnSource


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
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory

source = {"name": "a", "format": "divided", "path": sys.argv[1], "divider": "|"}
source["columns"] = {"source_text": 1, "reference": 0}
parameters = IngestParameters.model_validate({"sources": [source]})
ingest(parameters, Path("out"), Resources(work=Path("work"), workers=1))
rows = [row for table in ShardDirectory("out").tables() for row in table.to_pylist()]
print(json.dumps([[row["source_text"], row["reference"]] for row in rows]))
"""


def test_a_reader_from_outside_the_package(tmp_path: Path) -> None:
    install(tmp_path, "readers", "divided", READER)
    (tmp_path / "a.txt").write_text("Hello|Ahoj\nBye|Nazdar\n")
    rows = run(tmp_path, RUN, "a.txt").stdout
    assert json.loads(rows) == [["Ahoj", "Hello"], ["Nazdar", "Bye"]]


def test_readers_are_found_by_file_name() -> None:
    from paraforge.base.plugins import found_classes
    from paraforge.intake.bitext import readers
    from paraforge.intake.bitext.source import FileSource

    modules = {path.stem for path in Path(readers.__path__[0]).glob("[!_]*.py")}
    found = found_classes("paraforge.intake.bitext.readers", FileSource)
    assert {one.__module__.rpartition(".")[2] for one in found} == modules
