"""A corpus as text: ParaNMT's columns can be read back, JSON lines have every value. CSV and TSV for
spreadsheets: no text begins as a formula, and NUL is named."""

import csv
import gzip
import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from hypothesis import example, given
from hypothesis.strategies import characters, text

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, read_parquet
from paraforge.corpus.publication.datasets import open_published
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.interface.query.database import Rows
from paraforge.interface.query.output import write_text
from paraforge.interface.query.part import _three_columns
from tests.here import run_command
from tests.interface.query.test_query import ask
from tests.project import ROOT

# The module csv of Python 3.10 knows no NUL.
NUL = "" if sys.version_info >= (3, 11) else "\0"


def published(corpus: Path) -> pa.Table:
    return pa.concat_tables(read_parquet(path) for path in open_published(corpus).files)


def run(*arguments: object) -> str:
    return str(run_command("export-corpus", *arguments).stdout)


def test_the_configuration_paranmt_tsv_reads_it_back(corpus: Path, tmp_path: Path) -> None:
    run(corpus, tmp_path / "pairs.tsv.gz")
    chosen = yaml.safe_load((ROOT / "configs" / "corpus" / "paranmt-tsv.yaml").read_text(encoding="utf-8"))
    chosen["ingest"]["sources"][0]["path"] = str(tmp_path / "pairs.tsv.gz")
    parameters = IngestParameters.model_validate(chosen["ingest"])
    ingest(parameters, tmp_path / "ingested", Resources(work=tmp_path / "work"))
    back = pa.concat_tables(ShardDirectory(tmp_path / "ingested").tables())
    # With the rows that ingest's own rules refuse (lengths that differ too much), which keep their texts.
    rows = back.sort_by("line").to_pylist()
    assert [(row["reference"], row["translation"], row["given_score"]) for row in rows] == [
        (row["reference"], row["translation"], row["paraphrase_score"])
        for row in published(corpus).to_pylist()
    ]


def test_json_lines_have_every_column_and_value(corpus: Path, tmp_path: Path) -> None:
    run(corpus, tmp_path / "pairs.jsonl")
    rows = published(corpus).to_pylist()
    lines = (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == "" and len(lines) == len(rows)
    for line, row in zip(map(json.loads, lines), rows, strict=True):
        assert line.keys() == row.keys()
        assert line["reference"] == row["reference"] and line["source"] == row["source"]
        assert line["paraphrase_score"] == pytest.approx(row["paraphrase_score"], abs=1e-7)
    some = run(corpus, "-", "--format", "jsonl", "--columns", "translation, line").splitlines()
    each = run(corpus, "-", "--format", "jsonl", "--columns", "translation", "--columns", "line").splitlines()
    assert each == some
    assert [list(json.loads(line)) for line in some] == [["translation", "line"]] * len(rows)


def test_the_same_corpus_gives_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    for name in ("one.tsv.gz", "two.tsv.gz"):
        run(corpus, tmp_path / name)
    assert (tmp_path / "one.tsv.gz").read_bytes() == (tmp_path / "two.tsv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.tsv.gz").read_bytes()).decode() == run(corpus, "-")


def test_what_would_break_a_line_becomes_a_blank() -> None:
    texts = pa.array(["a\tb", "c\nd", "e\x85f", "g\u2028h", 'i"j', "k  l", ""])
    batch = pa.record_batch(
        {
            "reference": texts,
            "translation": texts.take(pa.array([4] * 7)),
            "paraphrase_score": pa.array([0.1, None, float("nan"), 1.0, 0.25, 1e-9, -0.5], pa.float32()),
        }
    )
    lines, changed = _three_columns(batch)
    assert changed == 4
    assert [line.split("\t") for line in lines] == [
        ["a b", 'i"j', "0.1\n"],
        ["c d", 'i"j', "\n"],
        ["e f", 'i"j', "\n"],
        ["g h", 'i"j', "1\n"],
        ['i"j', 'i"j', "0.25\n"],
        ["k  l", 'i"j', "1e-9\n"],
        ["", 'i"j', "-0.5\n"],
    ]


def test_an_empty_corpus_is_an_empty_file(projects: dict[str, Path], tmp_path: Path) -> None:
    run(projects["empty"] / "corpus", tmp_path / "none.tsv")
    assert (tmp_path / "none.tsv").read_bytes() == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "--format", "xml"], "There are paranmt and jsonl"),
        (["-", "--columns", "reference"], "--columns is for jsonl"),
        (["x.jsonl", "--columns", "colour"], "no column colour"),
    ],
)
def test_mistakes_are_said(corpus: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    if arguments[0] != "-":
        arguments = [str(tmp_path / arguments[0]), *arguments[1:]]
    with pytest.raises(InputError, match=message):
        run(corpus, *arguments)
    assert not list(tmp_path.iterdir())


def test_formulas_are_text_where_a_spreadsheet_reads_them() -> None:
    texts = pa.array(["=1+1", "+1", "-1", "@a", "\t=1", "a=1", "", None])
    batch = pa.record_batch(
        {"reference": texts, "translation": texts, "paraphrase_score": [-0.5] * len(texts)}
    )
    for spreadsheet, wanted in ((False, "=1+1\t=1+1\t-0.5\n"), (True, "'=1+1\t'=1+1\t-0.5\n")):
        lines = list(_three_columns(batch, spreadsheet)[0])
        assert lines[0] == wanted
        assert lines[-3:] == ["a=1\ta=1\t-0.5\n", "\t\t-0.5\n", "\t\t-0.5\n"]
        assert spreadsheet is not any(line.startswith(("=", "+", "-", "@")) for line in lines)


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
