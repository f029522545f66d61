"""Paths with variables and patterns."""

import os
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.paths import expand, files_of


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_DATA", "/data")
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.setenv("EMPTY", "")
    assert expand("$SOME_DATA/a.tsv") == "/data/a.tsv"
    assert expand("${SOME_DATA}x/a.tsv") == "/datax/a.tsv"
    assert expand("a$.tsv") == "a$.tsv"
    with pytest.raises(InputError, match=r"\$NOT_SET/a: the environment variable NOT_SET is not set"):
        expand("$NOT_SET/a")
    with pytest.raises(InputError, match="EMPTY is not set"):
        expand("$EMPTY/a")


def test_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert expand("~/a.tsv") == "/home/somebody/a.tsv"
    assert expand("~nobody.here.tsv") == "~nobody.here.tsv"


@pytest.mark.parametrize(
    ("names", "pattern", "found"),
    [
        (["b.tsv", "a.tsv", "c.txt", "d.tsv/in it"], "*.tsv", ["a.tsv", "b.tsv"]),
        (["a[1].tsv"], "a[1].tsv", ["a[1].tsv"]),
        (["corpus [1]/a.tsv"], "corpus [1]/*.tsv", ["a.tsv"]),
        (["corpus [1]/n/b.tsv", "corpus [1]/a.tsv"], "corpus [1]/**/*.tsv", ["a.tsv", "b.tsv"]),
    ],
)
def test_patterns_match_files_in_sorted_order(
    tmp_path: Path, names: list[str], pattern: str, found: list[str]
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in files_of(f"{tmp_path}/{pattern}")] == found


@pytest.mark.parametrize(
    ("name", "problem"), [("no.tsv", "no such file"), ("*.xyz", "no file matches"), ("", "directory")]
)
def test_nothing_there(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        files_of(f"{tmp_path}/{name}")


def test_non_regular_file_is_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.tsv")
    for name in (f"{tmp_path}/a.tsv", f"{tmp_path}/*.tsv", "/dev/zero"):
        with pytest.raises(InputError, match="not a regular file"):
            files_of(name)
    (tmp_path / "b.tmx").symlink_to(tmp_path / "gone")
    for name in ("b.tmx", "*.tmx"):
        with pytest.raises(InputError, match=r"b\.tmx: a link to a file that does not exist"):
            files_of(f"{tmp_path}/{name}")
