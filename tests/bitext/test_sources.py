"""From configuration to files: everything missing told at once, files joined and paired."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from paraforge.bitext.parameters import Cleaning, IngestParameters
from paraforge.bitext.sources import file_key, read_file, read_row_numbers, resolve
from paraforge.errors import ConfigurationError, InputError
from tests.bitext.helpers import rows_of, write


def parameters(*sources: dict[str, Any], **options: Any) -> IngestParameters:
    return IngestParameters.model_validate({"sources": list(sources), **options})


def tsv(path: str | list[str], name: str = "a", **options: Any) -> dict[str, Any]:
    return {"name": name, "format": "tsv", "path": path, "columns": {"cs": 1, "reference": 0}, **options}


def test_every_missing_file_in_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    there = write(tmp_path / "there.tsv", "a\tb\n")
    wanted = parameters(
        tsv(f"{tmp_path}/no.tsv", "one"),
        tsv(str(there), "two", drop_rows=f"{tmp_path}/no_rows.tsv"),
        tsv("$NOT_SET/a.tsv", "three"),
        tsv("$NOT_SET/b.tsv", "four"),
        tsv(str(there), "five"),
        {"name": "six", "format": "moses", "paths": {"cs": f"{tmp_path}/*.cs", "reference": str(there)}},
    )
    with pytest.raises(ConfigurationError) as raised:
        resolve(wanted, tmp_path / "work")
    assert len(raised.value.problems) == 4
    message = str(raised.value)
    for part in (
        "'one': ",
        "no.tsv",
        "'two': ",
        "no_rows.tsv",
        "NOT_SET is not set",
        "three, four",
        "'six': ",
    ):
        assert part in message
    assert "five" not in message
    assert raised.value.exit_code == 2


def test_the_files_of_a_pattern_are_joined_in_order(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        write(tmp_path / f"{name}.tsv", f"{name}\tx\n")
    (source,) = resolve(parameters(tsv([f"{tmp_path}/[ab].tsv", f"{tmp_path}/c.tsv"])), tmp_path)
    assert [file.main_path.name for file in source.files] == ["a.tsv", "b.tsv", "c.tsv"]


def test_parallel_patterns_are_paired_by_name(tmp_path: Path) -> None:
    for name in ("x.cs.gz", "x.en.gz", "y.cs", "y.en"):
        write(tmp_path / name, f"{name}\n")
    paths = {"cs": f"{tmp_path}/*.cs*", "reference": f"{tmp_path}/*.en*"}
    (source,) = resolve(parameters({"name": "m", "format": "moses", "paths": paths}), tmp_path)
    got = [rows_of(read_file(file, Cleaning(), Counter())) for file in source.files]
    assert got == [[(1, "x.cs.gz", "x.en.gz", None)], [(1, "y.cs", "y.en", None)]]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["x.cs", "x.en", "y.cs"], "different numbers of files: 2 for cs, 1 for reference"),
        (["x.cs", "x.en", "y.cs", "z.en"], "their names differ"),
    ],
)
def test_patterns_that_do_not_pair(tmp_path: Path, names: list[str], problem: str) -> None:
    for name in names:
        write(tmp_path / name, "a\n")
    paths = {"cs": f"{tmp_path}/*.cs", "reference": f"{tmp_path}/*.en"}
    with pytest.raises(ConfigurationError, match=problem):
        resolve(parameters({"name": "m", "format": "moses", "paths": paths}), tmp_path)


def test_row_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.tsv.gz", "row0\tset\n7\tsts\n3\tsick\n7\tsts\n\n")
    assert read_row_numbers(path).tolist() == [3, 7]
    assert read_row_numbers(write(tmp_path / "plain", "0\n5")).tolist() == [0, 5]


def test_row_numbers_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rows:2: '-1' is not a row number"):
        read_row_numbers(write(tmp_path / "rows", "row\n-1\n"))


def test_the_key_of_a_file_depends_on_what_its_rows_depend_on(tmp_path: Path) -> None:
    def key(content: str = "a\tb\n", cleaning: dict[str, Any] | None = None, **options: Any) -> str:
        path = write(tmp_path / "a.tsv", content)
        (source,) = resolve(parameters(tsv(str(path), **options)), tmp_path)
        settings = Cleaning.model_validate(cleaning or {})
        return file_key(source.files[0], settings, "bitext", 1, source.files[0].digests())

    same = key()
    assert key(name="renamed") == same
    assert key(cleaning={"duplicates": False}) == same
    assert key(drop_rows=str(write(tmp_path / "rows", "0\n"))) == same
    others = [key("a\tc\n"), key(cleaning={"max_words": 7}), key(columns={"cs": 0, "reference": 1})]
    others += [key(header=True), key(where={"column": 0, "values": ["a"]})]
    assert len({same, *others}) == 6
