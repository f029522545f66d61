"""CSV and TSV for spreadsheets: no text begins as a formula, and NUL is named."""

import csv
import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis.strategies import characters, text

from paraforge.base.errors import InputError
from paraforge.interface.query.database import Rows
from paraforge.interface.query.output import write_text
from tests.here import run_command
from tests.interface.query.test_query import ask

# The module csv of Python 3.10 knows no NUL.
NUL = "" if sys.version_info >= (3, 11) else "\0"


@pytest.mark.skipif(not NUL, reason="this Python writes CSV with NUL")
def test_nul_in_csv_is_named() -> None:
    rows = Rows(pa.schema([("a", pa.string())]), iter([pa.record_batch([["a", "b\0"]], names=["a"])]))
    with pytest.raises(InputError, match=r"row 2 has the character NUL.*JSON lines"):
        write_text(rows, io.StringIO(), "csv")


@given(
    text(characters(exclude_categories=["Cs"], exclude_characters=NUL), max_size=6),
    text("=+-@\t\r\n＝ a1'\"", max_size=4),
)
@example("HYPERLINK", "=")
def test_no_text_of_a_spreadsheet_begins_as_a_formula(value: str, start: str) -> None:
    value = start + value
    schema = pa.schema(
        [(f"{start}name", pa.string()), ("number", pa.float32()), ("list", pa.list_(pa.string()))]
    )
    batch = pa.record_batch([[value, None], [-0.5, 1.0], [[value], []]], schema=schema)
    for kind, delimiter in (("csv", ","), ("tsv", "\t")):
        file = io.StringIO()
        write_text(Rows(schema, iter([batch])), file, kind, spreadsheet=True)
        quoting = csv.QUOTE_MINIMAL if kind == "csv" else csv.QUOTE_NONE
        rows = list(
            csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=delimiter, quoting=quoting)
        )
        texts = [field for row in rows for place, field in enumerate(row) if place != 1]
        assert not any(field.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝")) for field in texts)
        # Numbers stay numbers, and but for the apostrophe nothing is changed.
        assert [row[1] for row in rows[1:]] == ["-0.5", "1.0"]
        if kind == "csv":
            plain = value.replace("\r\n", "\n").replace("\r", "\n")
            assert rows[1][0] in (plain, f"'{plain}")


@pytest.mark.parametrize(
    "arguments",
    [("query", "CORPUS", "SELECT 1", "-f", "json"), ("query", "CORPUS", "SELECT 1"), ("sample", "CORPUS"),
     ("export-corpus", "CORPUS", "-", "-f", "jsonl")],
)  # fmt: skip
def test_what_is_for_spreadsheets_is_refused_elsewhere(corpus: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="--safe-for-spreadsheets has no meaning here"):
        run_command(*(corpus if one == "CORPUS" else one for one in arguments), "--safe-for-spreadsheets")


def test_a_formula_is_text_in_a_spreadsheet(corpus: Path) -> None:
    sql = "SELECT '=HYPERLINK(''x'')' AS a, -1 AS b"
    assert ask(corpus, sql, "-f", "csv") == "a,b\n=HYPERLINK('x'),-1\n"
    assert ask(corpus, sql, "-f", "csv", "--safe-for-spreadsheets") == "a,b\n'=HYPERLINK('x'),-1\n"
