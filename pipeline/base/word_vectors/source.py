"""The lines of a file of word vectors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.text.compression import ByteStream

FloatArray = npt.NDArray[np.float32]

_READ_BYTES: Final = 1 << 22
_LONGEST_LINE: Final = 1 << 21


@dataclass(frozen=True)
class RawBlock:
    """Some words of a file, unchanged, and their vectors: words x dimension, float32, all finite."""

    words: list[bytes]
    vectors: FloatArray


@dataclass(frozen=True)
class VectorBlock:
    """Some distinct words of a file in their order, and their vectors: words x dimension, float32, all
    finite."""

    words: list[str]
    vectors: FloatArray


class VectorSource:
    """The lines of a file, taken in blocks, with the number of the line that was taken last."""

    def __init__(self, stream: ByteStream, path: Path) -> None:
        self._stream = stream
        self.path = path
        self.buffer = b""
        self.ended = False
        self.lines = 0
        self.block_start = 0

    def line_of(self, position: int) -> int:
        """Line number of the block's word `position`."""
        return self.block_start + position

    def fill(self, size: int) -> None:
        """Have at least `size` bytes in the buffer, unless the file ends before."""
        while len(self.buffer) < size and not self.ended:
            data = self._stream.read(_READ_BYTES)
            self.ended = not data
            self.buffer += data

    def take_lines(self) -> list[bytes]:
        """The next lines, without their ends; none at the end of the file."""
        self.fill(len(self.buffer) + 1)
        if self.ended:
            lines = self.buffer.removesuffix(b"\n").split(b"\n") if self.buffer else []
            self.buffer = b""
        else:
            whole, newline, self.buffer = self.buffer.rpartition(b"\n")
            lines = whole.split(b"\n") if newline else []
        if len(self.buffer) > _LONGEST_LINE:
            raise InputError(
                f"a line longer than {_LONGEST_LINE:,} bytes: not a file of word vectors",
                self.path,
                self.lines + len(lines) + 1,
            )
        self.block_start = self.lines + 1
        self.lines += len(lines)
        return lines
