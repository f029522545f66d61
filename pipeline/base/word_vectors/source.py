"""The bytes of a file of word vectors, by lines or by size."""

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
    """The bytes of a file, taken by lines or by size, with the number of the line that was taken last."""

    def __init__(self, stream: ByteStream, path: Path) -> None:
        self._stream = stream
        self.path = path
        self.buffer = b""
        self.position = 0  # of what was not taken yet; only binary data is taken by position
        self.ended = False
        self.lines = 0
        self.block_start = 0

    def line_of(self, position: int) -> int | None:
        """Line number of the block's word `position`; None where the file has no lines."""
        return self.block_start + position if self.block_start else None

    def fill(self, size: int) -> bool:
        """Have at least `size` bytes behind the position; False if the file ends before."""
        while len(self.buffer) - self.position < size and not self.ended:
            data = self._stream.read(_READ_BYTES)
            self.ended = not data
            self.buffer = self.buffer[self.position :] + data
            self.position = 0
        return len(self.buffer) - self.position >= size

    def take(self, size: int) -> bytes:
        """The next bytes, which have been filled."""
        taken = self.buffer[self.position : self.position + size]
        self.position += size
        return taken

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
