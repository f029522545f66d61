"""Queries: formats, kinds of corpora, and errors."""

import csv
import gzip
import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis.strategies import characters, floats, integers, text

from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.base.shards.store import write_index, write_shard
from paraforge.corpus.publication import lexicon_layout as layout
from paraforge.corpus.publication.datasets import open_published
from paraforge.interface.query.database import explain_errors
from paraforge.interface.query.pairs import format_fixed, one_line, sample_pairs
from tests.here import run_command


def ask(corpus: Path, *arguments: str) -> str:
    """What ``paraforge query`` prints; its error is raised."""
    return str(run_command("query", corpus, *arguments).stdout)


def rows_of(corpus: Path, sql: str) -> Any:
    """The rows of a query, by way of a file."""
    with tempfile.TemporaryDirectory() as directory:
        ask(corpus, sql, "-o", f"{directory}/rows.json")
        text = Path(directory, "rows.json").read_text(encoding="utf-8")
        return json.loads(text, parse_constant=pytest.fail)


@pytest.fixture
def table(corpus: Path) -> pa.Table:
    return pq.read_table(sorted(corpus.glob("*.parquet")))


def test_views_match_files(projects: dict[str, Path], corpus: Path, table: pa.Table) -> None:
    wanted = pc.sum(pc.greater(table["paraphrase_score"], pa.scalar(0.8, pa.float32()))).as_py()
    sql = "SELECT count(*) AS n FROM corpus WHERE paraphrase_score > 0.8::FLOAT"
    assert rows_of(corpus, sql) == [{"n": wanted}]
    manifest = open_published(corpus).manifest
    sql = "SELECT rejected, count(*) AS n FROM rejected WHERE rejected IS NOT NULL GROUP BY 1"
    for directory in (corpus, projects["first"] / "rejected"):
        assert {row["rejected"]: row["n"] for row in rows_of(directory, sql)} == manifest.counts.rejected
        # The view corpus is the directory that is named.
        rows = sum(pq.read_metadata(path).num_rows for path in directory.glob("*.parquet"))
        assert rows_of(directory, "SELECT count(*) AS n FROM corpus") == [{"n": rows}]


@given(floats(-1e6, 1e6), integers(0, 4))
@example(-0.001, 2)
def test_negative_zero_is_printed_as_zero(number: float, digits: int) -> None:
    shown = format_fixed(number, digits)
    assert not (shown.startswith("-") and set(shown) <= set("-0."))
    assert float(shown) == round(number, digits)


@pytest.mark.parametrize("kind", ["csv", "tsv.gz", "json", "jsonl", "parquet"])
def test_output_formats_have_every_row(corpus: Path, table: pa.Table, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    ask(corpus, "SELECT * FROM corpus -- a comment", "-o", str(path))
    wanted = table.to_pylist()
    if kind == "parquet":
        assert pq.read_table(path).to_pylist() == wanted
        return
    content = path.read_bytes()
    text = (gzip.decompress(content) if kind.endswith("gz") else content).decode()
    if kind in ("csv", "tsv.gz"):
        if kind == "csv":
            rows = list(csv.DictReader(io.StringIO(text)))
        else:
            rows = list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
        assert [int(row["line"]) for row in rows] == [row["line"] for row in wanted]
        assert [row["reference"] for row in rows] == [row["reference"] for row in wanted]
        scores = [pa.scalar(float(row["paraphrase_score"]), pa.float32()).as_py() for row in rows]
        assert scores == [row["paraphrase_score"] for row in wanted]
        return
    rows = json.loads(text) if kind == "json" else [json.loads(line) for line in text.splitlines()]
    assert [row["translation"] for row in rows] == [row["translation"] for row in wanted]
    assert not any("rejected" in row for row in rows)


def test_tsv_output_has_no_quoting(corpus: Path, tmp_path: Path) -> None:
    sql = """SELECT 'a' || chr(9) || chr(10) || 'b "c"' AS one, NULL AS two, 0.5 AS three, '"' AS four"""
    ask(corpus, f"{sql}; -- no tab; 'é'", "-o", str(tmp_path / "out.tsv"))
    assert (tmp_path / "out.tsv").read_text() == 'one\ttwo\tthree\tfour\na b "c"\t\t0.5\t"\n'


def test_json_output_has_null_for_nan(corpus: Path) -> None:
    sql = "SELECT 'nan'::FLOAT AS a, '-inf'::DOUBLE AS \"b c\", 0.5::FLOAT AS d, NULL::FLOAT AS e, 'nan' AS f"
    assert rows_of(corpus, sql) == [{"a": None, "b c": None, "d": 0.5, "e": None, "f": "nan"}]


@pytest.mark.parametrize("value", [str(10**37), f"[{10**37}]", "{'HUGEINT': 1::UHUGEINT}", "{'a': [0.1]}"])
@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "parquet"])
def test_numbers_are_exact_in_every_format(corpus: Path, tmp_path: Path, value: str, kind: str) -> None:
    ask(corpus, f"SELECT {value} AS v", "-o", str(tmp_path / f"out.{kind}"))
    found = duckdb.sql(f"SELECT v = ({value}) FROM '{tmp_path}/out.{kind}'").fetchall()
    assert found == [(True,)]


def test_values_are_exact_on_the_terminal(corpus: Path) -> None:
    assert re.search(f" {2**128 - 1} +│ +101 +│", ask(corpus, f"SELECT {2**128 - 1}, '101'::BIT"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SELEC 1"], r"(?s)syntax error.*\^"),
        (["SELECT nonsense FROM corpus"], r"(?s)nonsense.*Views: corpus, rejected"),
        (["SELECT pivot FROM corpus"], r'(?s)"pivot".*in quotation marks.*Views: corpus'),
        (["SELECT * FROM lexicon"], "no view 'lexicon': there is no directory"),
        (["SELECT reference::INTEGER FROM corpus"], "Conversion"),
        (["COPY (SELECT 1) TO '/dev/full' (FORMAT parquet)"], "the disk is full"),
        (["FROM 'nowhere.parquet'"], r"^IO Error: No files found .*nowhere\.parquet.*Views: corpus"),
        (["FROM delta_scan('x')"], r"(?s)^(?!a file cannot be read).*Views: corpus"),
        ([" ; "], "the query is empty"),
        (["SELECT 1; SELECT 2"], "only the last result is shown"),
        (["SELECT ['inf'::FLOAT, 1] AS a", "-o", "out.json"], 'column "a" has NaN or infinity in a nested'),
        (
            ["SELECT {'a': '\"', 'b': 'nan'::DOUBLE} AS a", "-o", "out.jsonl"],
            'column "a" has NaN or infinity',
        ),
        ([f"SELECT {10**38}", "-o", "out.parquet"], "Conversion Error"),
        (["SELECT 1", "-o", "result.xyz"], "cannot infer the format"),
        (["SELECT 1", "--memory", "lots"], "Use a size such as 600MB"),
        (["SELECT CASE WHEN line > 5 THEN error('stop') ELSE 1 END FROM corpus", "-o", "out.csv"], "stop"),
    ],
)
def test_query_mistakes_leave_no_file(
    corpus: Path, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        ask(corpus, *arguments)
    assert list(tmp_path.iterdir()) == []


@given(text(characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])))
@example("žluťoučký 日本 👍🏽 🫨 \U0001fadf \ufdd0 \U0010ffff \u202e\u200d")
def test_control_characters_are_escaped_on_terminal(value: str) -> None:
    """Characters that this Python does not know yet, such as new emoji, are not escaped."""
    assert one_line(value) == value
    assert one_line("a\x1b[31mb\r\nc\td\u2028e") == "a\ufffd[31mb  c d e"


def test_terminal_table_is_shortened(corpus: Path) -> None:
    result = run_command("query", corpus, "SELECT line FROM corpus", "--count", "3")
    assert len(result.stdout.splitlines()) == 3 + 5 and "first 3 rows" in result.stderr
    whole = run_command("query", corpus, "SELECT line FROM corpus LIMIT 3", "--count", "3")
    assert whole.stdout == result.stdout and "rows" not in whole.stderr
    result = run_command("query", corpus, "-", stdin="SELECT 'žluť' AS one\n").stdout
    assert "one" in result and "žluť" in result
    assert "column_name" in ask(corpus, "DESCRIBE corpus")
    assert "shown" not in ask(corpus, "SHOW TABLES") and "corpus" in ask(corpus, "SHOW TABLES")
    assert not {"\x1b", "\x9b"} & {*ask(corpus, "SELECT chr(27) AS one, chr(155) AS two")}


def test_any_parquet_file_can_be_queried(corpus: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({'a "b"': [1]}), tmp_path / "a.parquet")
    assert rows_of(tmp_path / "a.parquet", "SELECT * FROM corpus") == [{'a "b"': 1}]
    (path, *_) = sorted(corpus.glob("*.parquet"))
    wanted = [{"n": pq.read_metadata(path).num_rows}]
    assert rows_of(path, "SELECT count(*) AS n FROM corpus") == wanted
    with pytest.raises(InputError, match="Views: corpus"):
        ask(path, "SELECT nonsense FROM corpus")


def test_shards_can_be_queried_with_model_columns(tmp_path: Path) -> None:
    for place, name in ((tmp_path / "shards", "a"), (tmp_path / "shards" / "more", "b")):
        place.mkdir()
        record = write_shard(pa.table({name: [name, None]}), place / "shard-00000.parquet")
        write_index(place, [record], {"more_columns": ["more"]} if name == "a" else {})
    found = rows_of(tmp_path / "shards", "SELECT * FROM corpus")
    assert found == [{"a": "a", "b": "b"}, {"a": None, "b": None}]


def test_query_pivot_and_user_file(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("source,name\nnews,News\n")
    sql = f"SELECT DISTINCT name FROM corpus JOIN '{tmp_path}/names.csv' USING (source)"
    assert rows_of(corpus, sql) == [{"name": "News"}]
    pivot = "PIVOT corpus ON source USING count(*) GROUP BY rank"
    assert {row["rank"] for row in rows_of(corpus, f"SET threads = 1; {pivot}")} == {0}
    assert "news" in ask(corpus, pivot)


def test_query_empty_corpus(projects: dict[str, Path]) -> None:
    empty = projects["empty"] / "corpus"
    assert rows_of(empty, "SELECT count(*) AS n FROM corpus") == [{"n": 0}]
    columns = rows_of(empty, "DESCRIBE corpus")
    assert [row["column_name"] for row in columns] == open_published(empty).schema.names


def test_error_quoting_damaged_bytes() -> None:
    with pytest.raises(InputError, match="paraforge verify"), explain_errors():
        b"\xcc\xcc".decode()


def test_special_characters_in_paths(own_corpus: Path) -> None:
    sources = rows_of(own_corpus, "SELECT DISTINCT source FROM corpus ORDER BY ALL")
    for name in ("source=x", "it's a corpus", "a\\b", "*?[a] %41"):
        (own_corpus.parent / name).mkdir()
        moved = own_corpus.rename(own_corpus.parent / name / "corpus")
        assert rows_of(moved, "SELECT DISTINCT source FROM corpus ORDER BY ALL") == sources
        assert sample_pairs(open_published(moved), 5, 1).pairs.num_rows == 5
        moved.rename(own_corpus)


def test_corpus_by_relative_path_or_link(
    own_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(own_corpus)
    for path in (Path("corpus"), Path("link"), Path("./corpus/../corpus")):
        assert rows_of(path, "SELECT count(*) > 0 AS some FROM corpus")[0]["some"]


def test_corpus_without_manifest(own_corpus: Path) -> None:
    (own_corpus / "_manifest.json").unlink()
    with pytest.raises(InputError, match=r"_manifest\.json: no such file"):
        ask(own_corpus, "SELECT 1")
    with pytest.raises(InputError, match=r"Did you mean .*corpus\?"):
        ask(own_corpus.parent, "SELECT 1")
    with pytest.raises(InputError, match="no such directory"):
        ask(own_corpus / "nowhere", "SELECT 1")


def test_incomplete_corpus_is_error(own_corpus: Path) -> None:
    path = own_corpus / "shard-00000.parquet"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(InputError, match=r"shard-00000\.parquet: damaged: it has"):
        ask(own_corpus, "SELECT 1")
    path.unlink()
    with pytest.raises(InputError, match=r"shard-00000\.parquet: missing"):
        ask(own_corpus, "SELECT 1")


def test_flipped_byte_in_queried_file(own_corpus: Path) -> None:
    path = own_corpus / "shard-00000.parquet"
    content = bytearray(path.read_bytes())
    content[:4] = b"ZIP!"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a complete Parquet file"):
        ask(own_corpus, "SELECT 1")
    content[:4] = b"PAR1"
    for place in range(200, len(content) // 2, 97):
        content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match="paraforge verify"):
        ask(own_corpus, "SELECT sum(length(reference)), sum(length(source_text)), sum(line) FROM corpus")


def write_lexicon(directory: Path, entries: list[dict[str, Any]], version: int = layout.FORMAT) -> None:
    """A lexicon as the stage leaves it; without entries it has no file."""
    directory.mkdir()
    columns = [column for column in layout.SCHEMA if not column.nullable]
    usual = {column.name: "a" if column.type == pa.string() else 1 for column in columns}
    if entries:
        table = pa.Table.from_pylist([usual | entry for entry in entries], layout.SCHEMA)
        pq.write_table(table, directory / "lexicon-00000.parquet")
    files = [{"file": path.name, "rows": len(entries)} for path in directory.iterdir()]
    write_json(directory / "lexicon.json", {"format": version, "files": files})


@pytest.mark.parametrize("rows", [0, 3])
def test_lexicon_is_a_view(own_corpus: Path, rows: int) -> None:
    write_lexicon(own_corpus.parent / "lexicon", [{}] * rows)
    assert rows_of(own_corpus, "SELECT count(word) AS n FROM lexicon") == [{"n": rows}]


def test_damaged_lexicon_matters_only_if_queried(own_corpus: Path) -> None:
    write_lexicon(own_corpus.parent / "lexicon", [{}], 99)
    assert ask(own_corpus, "SELECT count(*) FROM corpus")
    with pytest.raises(InputError, match=r"no view 'lexicon'.*format 99"):
        ask(own_corpus, "SELECT * FROM lexicon")
