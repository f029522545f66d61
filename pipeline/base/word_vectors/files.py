"""Reads text files of word vectors (word2vec, GloVe, paragram), checking every line."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.text.compression import ByteStream, open_bytes

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float32]

_LARGEST_DIMENSION: Final = 20_000
_READ_BYTES: Final = 1 << 22
_LONGEST_LINE: Final = 1 << 21
_FIX_LINE: Final = "Correct or remove the line; each has a word and then {} numbers, separated by spaces."
_FIX_BINARY: Final = (
    "Write it as text with gensim: KeyedVectors.load_word2vec_format(PATH, binary=True)"
    ".save_word2vec_format(TEXT)."
)


@dataclass(frozen=True)
class _RawBlock:
    """Some words of a file, unchanged, and their vectors: words x dimension, float32, all finite."""

    words: list[bytes]
    vectors: FloatArray


@dataclass(frozen=True)
class VectorBlock:
    """Some distinct words of a file in their order, and their vectors: words x dimension, float32, all
    finite."""

    words: list[str]
    vectors: FloatArray


class _Source:
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


def read_vector_file(path: Path, notes: list[str] | None = None) -> Iterator[VectorBlock]:
    """Read a file of word vectors block by block, in bounded memory but for the set of words seen.

    A first line of two whole numbers is word2vec's header (words, dimension); without one, the numbers at the
    end of the first line give the dimension. A word may hold spaces (GloVe 840B has such) if none of its
    later parts looks like a number.

    Published files have words that are not UTF-8, which no text can hold, and words that come again: the
    former and all but the first of the latter are left out, with a warning that counts them, which is also
    added to ``notes``.

    Raises InputError: word2vec's binary format; no vectors; a line with too few or too many numbers; NaN or
    infinity; a header that the file does not keep; damaged or truncated compressed data.
    """
    seen: set[str] = set()
    undecodable = _LeftOut("words that are not UTF-8")
    repeated = _LeftOut("words that were in the file before")
    with open_bytes(path) as stream:
        source = _Source(stream, path)
        header = _header(source)
        if header is not None and _looks_binary(source):
            raise InputError("word2vec's binary format: text is read", path, remedy=_FIX_BINARY)
        for block in _read_text(source, None if header is None else header[1]):
            words: list[str] = []
            places: list[int] = []
            for position, name in enumerate(block.words):
                try:
                    word = name.decode("utf-8")
                except UnicodeDecodeError:
                    undecodable.add(name, source.line_of(position))
                    continue
                if word in seen:
                    repeated.add(name, source.line_of(position))
                    continue
                seen.add(word)
                words.append(word)
                places.append(position)
            whole = len(words) == len(block.words)
            yield VectorBlock(words, block.vectors if whole else block.vectors[places])
    for left_out in (undecodable, repeated):
        if left_out.count:
            logger.warning("%s: %s", path, left_out)
            if notes is not None:
                notes.append(str(left_out))
    if not seen:
        raise InputError(
            "no word vectors in the file", path, remedy="Give a file with a word and its vector a line."
        )
    found = len(seen) + undecodable.count + repeated.count
    if header is not None and header[0] != found:
        raise InputError(
            f"the header says {header[0]} words, the file has {found}",
            path,
            1,
            "If the file is whole, correct its first line; otherwise fetch it again.",
        )


class _LeftOut:
    """Counts what is left out, and remembers the first of it."""

    def __init__(self, what: str) -> None:
        self.count = 0
        self._what = what
        self._first = ""

    def add(self, word: bytes, line: int) -> None:
        """One more."""
        self.count += 1
        if self.count == 1:
            shown = repr(word[:40].decode("utf-8", "backslashreplace"))
            self._first = f"{shown} in line {line:,}"

    def __str__(self) -> str:
        return f"{self.count:,} {self._what} are left out, the first {self._first}"


def _header(source: _Source) -> tuple[int, int] | None:
    source.fill(1 << 16)
    line, newline, rest = source.buffer.partition(b"\n")
    fields = line.split()
    if len(fields) != 2 or not newline or not all(field.isdigit() and len(field) < 12 for field in fields):
        return None
    source.buffer = rest
    source.lines = 1
    words, dimension = int(fields[0]), int(fields[1])
    _check_dimension(dimension, source.path)
    return words, dimension


def _check_dimension(dimension: int, path: Path) -> None:
    if not 1 <= dimension <= _LARGEST_DIMENSION:
        raise InputError(
            f"vectors of {dimension} numbers; 1 to {_LARGEST_DIMENSION:,} are possible",
            path,
            1,
            "Give a file with a word and its vector a line.",
        )


def _looks_binary(source: _Source) -> bool:
    source.fill(1 << 16)
    return any(byte < 0x20 and byte not in b"\t\n\r" for byte in source.buffer[: 1 << 16])


def _read_text(source: _Source, dimension: int | None) -> Iterator[_RawBlock]:
    while True:
        lines = source.take_lines()
        if lines:
            if dimension is None:
                dimension = _dimension_of(lines[0])
                _check_dimension(dimension, source.path)
            yield _parse_lines(lines, dimension, source)
        elif source.ended:
            return


def _dimension_of(line: bytes) -> int:
    """How many numbers a line ends with, without its first field, the word."""
    dimension = 0
    for field in reversed(line.split()[1:]):
        if not is_number(field):
            break
        dimension += 1
    return dimension


def _parse_lines(lines: list[bytes], dimension: int, source: _Source) -> _RawBlock:
    words = []
    numbers = []
    for position, line in enumerate(lines):
        line = line.rstrip(b" \r")
        if line.count(b" ") == dimension:
            word, _, rest = line.partition(b" ")
        else:
            word, rest = _split_unusual(line, dimension, source, position)
        if not word:
            raise _ragged(line, dimension, source, position)
        words.append(word)
        numbers.append(rest)
    values = _floats(b" ".join(numbers))
    if values is None or values.size != len(lines) * dimension or not np.isfinite(values).all():
        _complain(lines, numbers, dimension, source)
        raise AssertionError("a block is wrong, and none of its lines")
    return _RawBlock(words, values.reshape(len(lines), dimension))


def _floats(text: bytes) -> FloatArray | None:
    """The numbers of a text separated by spaces, float32; None if something in it is not a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            # Beyond float32's range, a number becomes infinite, which the caller refuses.
            with np.errstate(over="ignore"):
                return np.fromstring(text, dtype=np.float64, sep=" ").astype(np.float32)
        except (DeprecationWarning, ValueError):
            return None


def _split_unusual(line: bytes, dimension: int, source: _Source, position: int) -> tuple[bytes, bytes]:
    """Word and numbers of a line that is not separated by single spaces, or whose word has spaces."""
    fields = line.split()
    extra = len(fields) - dimension - 1
    if extra < 0 or any(is_number(field) for field in fields[1 : extra + 1]):
        raise _ragged(line, dimension, source, position)
    return b" ".join(fields[: extra + 1]), b" ".join(fields[extra + 1 :])


def is_number(field: bytes) -> bool:
    """Whether a field of a text file is a number, also one that is not finite."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _ragged(line: bytes, dimension: int, source: _Source, position: int) -> InputError:
    found = max(len(line.split()) - 1, 0)
    return InputError(
        f"{found} numbers behind the word, not {dimension}" if line.strip() else "a blank line",
        source.path,
        source.line_of(position),
        _FIX_LINE.format(dimension),
    )


def _complain(lines: list[bytes], numbers: list[bytes], dimension: int, source: _Source) -> None:
    """Raise the InputError of the first line that is wrong."""
    for position, text in enumerate(numbers):
        for field in text.split():
            if not is_number(field) or (values := _floats(field)) is None or values.size != 1:
                raise InputError(
                    f"{field[:40]!r} is not a number",
                    source.path,
                    source.line_of(position),
                    _FIX_LINE.format(dimension),
                )
            if not math.isfinite(float(values[0])):
                raise InputError(
                    f"{field[:40].decode()} in a vector",
                    source.path,
                    source.line_of(position),
                    "Remove the line: a vector has finite numbers.",
                )
        if len(text.split()) != dimension:
            raise _ragged(lines[position], dimension, source, position)
