"""Moses pairs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.block import Block
from paraforge.intake.bitext.readers.moses import MosesSource
from tests.intake.bitext.helpers import rows_of, write


def blocks(paths: dict[str, Path], reading: Reading) -> Iterator[Block]:
    named = {column: str(path) for column, path in paths.items()}
    return MosesSource(format="moses", name="x", paths=named).read(paths, reading)


def test_rows(tmp_path: Path) -> None:
    paths = {
        "source_text": write(tmp_path / "a.cs.gz", "Ahoj\n\n"),
        "reference": write(tmp_path / "a.en", "Hello\nHi"),
    }
    assert rows_of(blocks(paths, Reading())) == [
        (1, "Ahoj", "Hello", None),
        (2, "", "Hi", None),
    ]


def test_a_row_has_the_reason_of_either_side(tmp_path: Path) -> None:
    paths = {
        "source_text": write(tmp_path / "a.cs", b"a\nb\xff\nc\n"),
        "reference": write(tmp_path / "a.en", f"a\nb\n{'c' * 2000}\n"),
    }
    rows = rows_of(blocks(paths, Reading(strict=False, max_line_bytes=1500)))
    assert [row[-1] for row in rows] == [None, "invalid_utf8", "overlong_line"]


def test_scores_in_a_file_of_their_own(tmp_path: Path) -> None:
    paths = {
        "reference": write(tmp_path / "r", "a\nb\nc\n"),
        "translation": write(tmp_path / "t", "A\nB\nC\n"),
        "score": write(tmp_path / "s", "0.5\n\n -1e-3 \n"),
    }
    (block,) = blocks(paths, Reading())
    assert block.scores is not None
    assert block.scores.to_pylist() == [0.5, None, pytest.approx(-1e-3)]


def test_unequal_line_counts_are_an_error_even_where_bad_rows_are_only_counted(tmp_path: Path) -> None:
    paths = {"source_text": write(tmp_path / "a.cs", "a\nb\n"), "reference": write(tmp_path / "a.en", "a\n")}
    with pytest.raises(InputError, match=r"a\.en:1: the parallel files do not have the same number of lines"):
        rows_of(blocks(paths, Reading(strict=False)))
