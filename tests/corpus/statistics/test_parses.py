"""Parse files, good and bad."""

from __future__ import annotations

from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.statistics.pairs import read_parses
from paraforge.corpus.statistics.parameters import ParseFile


def test_a_file_parallel_to_a_source(tmp_path: Path) -> None:
    path = tmp_path / "trees.txt"
    path.write_text("(S (NP a))\n\n(S (VP b))\n(broken\n", encoding="utf-8")
    files = [ParseFile(path=str(path), source="news")]
    # line 2 has no tree; line 4 is not wanted and not looked at
    assert read_parses(files, {"news": {1, 2, 3}}) == {("news", 1): "S NP", ("news", 3): "S VP"}
    with pytest.raises(InputError, match=r"trees.txt:4: no bracketed tree: a bracket is not closed"):
        read_parses(files, {"news": {4}})


def test_a_keyed_file(tmp_path: Path) -> None:
    path = tmp_path / "trees.tsv"
    path.write_text("news\t7\t(S (NP a))\nbooks\t7\t(S (VP a))\n", encoding="utf-8")
    files = [ParseFile(path=str(path))]
    assert read_parses(files, {"books": {7, 8}}) == {("books", 7): "S VP"}
    path.write_text("news\t7\t(S (NP a))\n(S (VP a))\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"trees.tsv:2: source, line number and tree are expected"):
        read_parses(files, {"news": {7}})
