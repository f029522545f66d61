"""Texts of a file or pipe, one per line, as blocks of bytes that any process can take apart."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.text.compression import read_ahead, refuse_binary

PIPE = Path("-")
BLOCK_BYTES = 1 << 21


@dataclass(frozen=True)
class TextBlock:
    """Whole lines.

    data: their bytes, a line feed between two lines and none after the last one.
    first_line: number of the first line, from 1. lines: how many.
    """

    data: bytes
    first_line: int
    lines: int

    def texts(self, source: str | Path) -> Any:
        """The lines as a pyarrow string array; a carriage return at a line's end is no part of it. Raises
        InputError: a line is not UTF-8, with its number."""
        lines = self.data.replace(b"\r\n", b"\n").removesuffix(b"\r").split(b"\n")
        try:
            # A whole block is checked at once; the line is looked for only where something is wrong.
            self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            number = self.first_line + self.data.count(b"\n", 0, error.start)
            raise InputError("not UTF-8 text", source, number, "Convert the file to UTF-8.") from error
        return pa.array(lines, pa.binary()).cast(pa.string())


def text_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[TextBlock]:
    """The lines of a UTF-8 file (plain, gz, bz2, xz, zst) or, for `-`, of standard input, split at line feeds
    alone. The last line may lack its end; a byte order mark is no text. Memory holds a few blocks.

    Raises InputError: no such file, empty, damaged or not text.
    """
    if path == PIPE:
        chunks = iter(lambda: sys.stdin.buffer.read(block_bytes), b"")
    else:
        if not path.is_file():
            raise InputError("no such file", path)
        refuse_binary(path)
        chunks = read_ahead(path, block_bytes)
    first_line = 1
    rest: list[bytes] = []
    for number, chunk in enumerate(chunks):
        if not number:
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        whole, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest.append(chunk)
            continue
        data = b"".join([*rest, whole])
        rest = [tail] if tail else []
        lines = data.count(b"\n") + 1
        yield TextBlock(data, first_line, lines)
        first_line += lines
    if rest:
        data = b"".join(rest)
        yield TextBlock(data, first_line, data.count(b"\n") + 1)
