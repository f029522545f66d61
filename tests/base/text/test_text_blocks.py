"""Lines of files and pipes."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.text.text_blocks import PIPE, text_blocks

TEXT = "one\n\ntwo\u2028half\r\nthree\n" + "long " * 50 + "\nlast"
LINES = ["one", "", "two\u2028half", "three", "long " * 50, "last"]


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_are_those_of_the_file(tmp_path: Path, block_bytes: int, end: str) -> None:
    plain, packed = tmp_path / "plain.txt", tmp_path / "packed.txt.gz"
    plain.write_text(TEXT + end, encoding="utf-8", newline="")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        blocks = list(text_blocks(path, block_bytes))
        assert [line for block in blocks for line in block.texts(path).to_pylist()] == LINES
        numbers = [block.first_line for block in blocks]
        assert numbers == [1 + sum(block.lines for block in blocks[:n]) for n in range(len(blocks))]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffone\n\ufefftwo\n".encode())
    assert [line for block in text_blocks(path) for line in block.texts(path).to_pylist()] == [
        "one",
        "\ufefftwo",
    ]


def test_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode()), encoding="utf-8"))
    assert [line for block in text_blocks(PIPE, 10) for line in block.texts(PIPE).to_pylist()] == LINES


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(text_blocks(tmp_path / "missing"))
    path = tmp_path / "latin"
    path.write_bytes(b"fine\nalso\ncaf\xe9\n")
    with pytest.raises(InputError, match=r"latin:3: not UTF-8"):
        [block.texts(path) for block in text_blocks(path)]
    path.write_bytes(b"PK\x03\x04rest")
    with pytest.raises(InputError, match="zip archive"):
        list(text_blocks(path))
