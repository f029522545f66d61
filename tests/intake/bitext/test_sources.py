"""Source files: patterns, missing files, and parts that are read with any number of threads."""

import os
import re
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext import sources as module
from paraforge.intake.bitext.examination import problems
from paraforge.intake.bitext.parameters import Cleaning, IngestParameters
from paraforge.intake.bitext.readers.tsv import TsvSource
from paraforge.intake.bitext.source import ONLY
from paraforge.intake.bitext.sources import (
    SourceFile,
    file_key,
    read_file,
    read_parts,
    read_row_numbers,
    resolve,
)
from tests.intake.bitext.helpers import rows_of, tsv, write


def parameters(*sources: dict[str, Any], **options: Any) -> IngestParameters:
    return IngestParameters.model_validate({"sources": list(sources), **options})


def moses(source_text: str, reference: str, name: str = "m") -> dict[str, Any]:
    paths = {"source_text": source_text, "reference": reference}
    return {"name": name, "format": "moses", "paths": paths}


def test_all_missing_files_in_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    there = write(tmp_path / "there.tsv", "a\tb\n")
    wanted = parameters(
        tsv(f"{tmp_path}/no.tsv", "one"),
        tsv(str(there), "two", drop_rows=f"{tmp_path}/no_rows.tsv"),
        tsv("$NOT_SET/a.tsv", "three"),
        tsv("$NOT_SET/b.tsv", "four"),
        tsv(str(there), "five"),
        moses(f"{tmp_path}/*.cs", str(there), "six"),
        tsv(str(there), "seven", drop_rows=f"{tmp_path}/*.rows"),
    )
    for name in "ab":
        write(tmp_path / f"{name}.rows", "0\n")
    with pytest.raises(ConfigurationError) as raised:
        resolve(wanted, tmp_path / "work")
    assert len(raised.value.problems) == 6
    message = str(raised.value)
    wanted = "'one': .*no.tsv.*'two': .*no_rows.tsv.*'three': .*'four': .*NOT_SET is not set.*'six': "
    assert re.search(f"{wanted}.*'seven': drop_rows: .* is more than one file", message, re.DOTALL), message
    assert "five" not in message
    assert raised.value.exit_code == 2


def test_files_of_pattern_are_joined_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a", "c"):
        write(tmp_path / f"{name}.tsv", f"{name}\tx\n")
    monkeypatch.chdir(tmp_path)  # where other hosts are not
    (source,) = resolve(parameters(tsv(["[ab].tsv", f"{tmp_path}/c.tsv"])), tmp_path)
    assert [file.main_path for file in source.files] == [tmp_path / f"{name}.tsv" for name in "abc"]


def test_parallel_patterns_are_paired_by_name(tmp_path: Path) -> None:
    for name in ("x.cs.gz", "x.en.gz", "y.cs", "y.en"):
        write(tmp_path / name, f"{name}\n")
    (source,) = resolve(parameters(moses(f"{tmp_path}/*.cs*", f"{tmp_path}/*.en*")), tmp_path)
    got = [rows_of(read_file(file, Cleaning())) for file in source.files]
    assert got == [[(1, "x.cs.gz", "x.en.gz", None)], [(1, "y.cs", "y.en", None)]]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["x.cs", "x.en", "y.cs"], "different numbers of files: 2 for source_text, 1 for reference"),
        (["x.cs", "x.en", "y.cs", "z.en"], "their names differ"),
    ],
)
def test_unpaired_patterns_are_error(tmp_path: Path, names: list[str], problem: str) -> None:
    for name in names:
        write(tmp_path / name, "a\n")
    with pytest.raises(ConfigurationError, match=problem):
        resolve(parameters(moses(f"{tmp_path}/*.cs", f"{tmp_path}/*.en")), tmp_path)


def test_nul_error_names_its_file(tmp_path: Path) -> None:
    write(tmp_path / "x.cs", "a\nb\n")
    write(tmp_path / "x.en", "c\nd\0\n")
    paths = {"source_text": f"{tmp_path}/x.cs", "reference": f"{tmp_path}/x.en"}
    for order in (paths, dict(reversed(paths.items()))):
        wanted = parameters({"name": "m", "format": "moses", "paths": order})
        (source,) = resolve(wanted, tmp_path)
        with pytest.raises(InputError, match=r"x\.en:2: a NUL character in reference"):
            read_parts(source.files[0], Cleaning(), "bitext", source.files[0].digests(), tmp_path / "parts")
        assert len(problems(wanted)) == 1
        assert "x.en:2: a NUL" in problems(wanted)[0]


def test_problems_are_found_in_first_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    good = write(tmp_path / "good.tsv.gz", "a\tb\n" * 3_000_000)
    os.mkfifo(tmp_path / "pipe.tsv")
    for number in range(8):
        write(tmp_path / f"many{number}.tsv", "a\n")
    write(tmp_path / "a.jsonl", '{"cs": "a"}\n')
    write(tmp_path / "rows", "row\n-1\n")
    wanted = parameters(
        tsv(str(good), "good"),
        tsv(str(good), "column", columns={"source_text": 7, "reference": 0}),
        tsv(f"{tmp_path}/missing.tsv", "missing"),
        tsv("$NOT_SET/a.tsv", "unset"),
        tsv(f"{tmp_path}/pipe.tsv", "pipe"),
        tsv("/dev/zero", "zero"),
        tsv(str(write(tmp_path / "header.tsv", "a\tb\n")), "header", header=True),
        tsv(str(good), "rows", drop_rows=f"{tmp_path}/rows"),
        tsv(f"{tmp_path}/many*.tsv", "many"),
        {"name": "json", "format": "jsonl", "path": f"{tmp_path}/a.jsonl",
         "columns": {"source_text": "cs", "reference": "en"}},
    )  # fmt: skip
    found = problems(wanted)
    expected = [
        "'column': .*good.tsv.gz:1: no column 7 for source_text: the first line has 2",
        "'missing': .*missing.tsv: no such file",
        "'unset': .*NOT_SET is not set",
        "'pipe': .*pipe.tsv: not a regular file",
        "'zero': /dev/zero: not a regular file",
        "'header': .*header.tsv: the file has no rows",
        "'rows': .*rows:2: '-1' is not a row number",
        *[rf"'many': .*many{number}.tsv:1: no column 1" for number in range(5)],
        "'many': further files were not checked",
        "'json': .*a.jsonl:1: .*no field 'en'",
    ]
    assert len(found) == len(expected)
    for problem, pattern in zip(found, expected, strict=True):
        assert re.search(pattern, problem), (pattern, problem)
    assert problems(parameters(tsv(str(good), "good"))) == []
    assert problems(parameters({"name": "s", "format": "sample"})) == []


def test_row_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.tsv.gz", "row0\tset\n7\tsts\n3\tsick\n7\tsts\n\n")
    assert read_row_numbers(path) == [3, 7]
    assert read_row_numbers(write(tmp_path / "plain", "0\n5")) == [0, 5]
    large = write(tmp_path / "large", f"{'9' * 18}\n{'9' * 19}\n")  # the second does not fit in int64
    with pytest.raises(InputError, match=r"large:2: '9{19}' is not a row number"):
        read_row_numbers(large)


def test_file_key_covers_what_decides_its_rows(tmp_path: Path) -> None:
    def key(content: str = "a\tb\n", **options: Any) -> str:
        path = write(tmp_path / "a.tsv", content)
        (source,) = resolve(parameters(tsv(str(path), **options)), tmp_path)
        return file_key(source.files[0], Cleaning(), "bitext", 1, source.files[0].digests())

    same = key()
    assert key(name="renamed") == key(license="MIT") == same
    assert key(drop_rows=str(write(tmp_path / "rows", "0\n"))) == same
    others = [key("a\tc\n"), key(columns={"source_text": 0, "reference": 1}), key(header=True)]
    assert len({same, *others}) == 4


ROWS = 1_000


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_ROWS", 70)
    monkeypatch.setattr(module, "Reading", partial(Reading, block_bytes=900))


def read(directory: Path, threads: int) -> ShardDirectory:
    path = directory / "bitext.tsv"
    lines = ["" if row % 31 == 0 else f"line {row} \tv\u011bta {row}" for row in range(1, ROWS + 1)]
    path.write_text("\r\n".join(lines), encoding="utf-8")
    source = TsvSource(format="tsv", name="a", path=str(path), columns={"source_text": 1, "reference": 0})
    file = SourceFile(source, {ONLY: path})
    parts = directory / f"parts-{threads}"
    read_parts(file, Cleaning(), "bitext", file.digests(), parts, threads)
    return ShardDirectory(parts)


@pytest.mark.usefixtures("small_parts")
def test_number_of_threads_changes_no_byte(tmp_path: Path) -> None:
    *_, shards = [read(tmp_path, threads) for threads in (1, 2, 5)]
    report = shards.description["report"]
    assert (report["rows"], report["last_line"]) == (ROWS, ROWS)
    changes = {name: count for name, count in report["findings"]["changes"].items() if count}
    assert changes == {"crlf": ROWS - 1, "trimmed": ROWS - ROWS // 31}
    one, *others = (
        {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        for place in (tmp_path / f"parts-{threads}" for threads in (1, 2, 5))
    )
    assert all(other == one for other in others)
    assert shards.rows == [70] * 14 + [20]
    table = pa.concat_tables(list(shards.tables()))
    expected = ["" if row % 31 == 0 else f"v\u011bta {row}" for row in range(1, ROWS + 1)]
    assert table.column("source_text").to_pylist() == expected
    assert table.column("line").to_pylist() == list(range(1, ROWS + 1))


@pytest.mark.usefixtures("small_parts")
def test_partly_read_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, "write_index", Mock(side_effect=KeyboardInterrupt))
        read(tmp_path, 1)
    assert len(list((tmp_path / "parts-1").iterdir())) == 15
    first, second = read(tmp_path, 1), read(tmp_path, 2)
    assert (first.records, first.description) == (second.records, second.description)
