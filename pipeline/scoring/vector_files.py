"""Reads files of word vectors (word2vec text and binary, GloVe, paragram), checking every line."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from pipeline.bitext.compression import open_bytes
from pipeline.errors import InputError
from pipeline.scoring.vector_binary import read_binary
from pipeline.scoring.vector_source import FloatArray, VectorBlock, VectorSource

_LARGEST_DIMENSION: Final = 20_000
_FIX_LINE: Final = "Mend or remove the line; each has a word and then {} numbers, parted by spaces."


def read_vector_file(path: Path) -> Iterator[VectorBlock]:
    """Read a file of word vectors block by block, in bounded memory but for the set of words seen.

    A first line of two whole numbers is word2vec's header (words, dimension); without one, the numbers at
    the end of the first line give the dimension. A word may hold spaces (GloVe 840B has such) if none of its
    later parts looks like a number. After a header, binary data is taken for word2vec's binary format.

    Raises:
        InputError: no vectors; a line with too few or too many numbers; NaN or infinity; a word twice;
            invalid UTF-8; a header that the file does not keep; damaged or truncated compressed data.
    """
    seen: dict[str, int] = {}
    with open_bytes(path) as stream:
        source = VectorSource(stream, path)
        header = _header(source)
        if header is not None and _looks_binary(source):
            blocks = read_binary(source, *header)
        else:
            blocks = _read_text(source, None if header is None else header[1])
        for block in blocks:
            for position, word in enumerate(block.words):
                if word in seen:
                    raise InputError(
                        f"the word {word!r} stands here a second time; it was word {seen[word] + 1} already",
                        path,
                        source.line_of(position),
                        "Keep one of the two.",
                    )
                seen[word] = len(seen)
            yield block
    if not seen:
        raise InputError(
            "no word vectors in the file", path, remedy="Give a file with a word and its vector a line."
        )
    if header is not None and header[0] != len(seen):
        raise InputError(
            f"the header says {header[0]} words, the file has {len(seen)}",
            path,
            1,
            "If the file is whole, correct its first line; otherwise fetch it again.",
        )


def _header(source: VectorSource) -> tuple[int, int] | None:
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


def _looks_binary(source: VectorSource) -> bool:
    source.fill(1 << 16)
    return any(byte < 0x20 and byte not in b"\t\n\r" for byte in source.buffer[: 1 << 16])


def _read_text(source: VectorSource, dimension: int | None) -> Iterator[VectorBlock]:
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
    """How many numbers stand at the end of a line, its first field, the word, apart."""
    dimension = 0
    for field in reversed(line.split()[1:]):
        if not _is_number(field):
            break
        dimension += 1
    return dimension


def _parse_lines(lines: list[bytes], dimension: int, source: VectorSource) -> VectorBlock:
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
        try:
            words.append(word.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(
                f"invalid UTF-8 in the word {word[:40]!r}",
                source.path,
                source.line_of(position),
                "Convert the file, e.g. with 'iconv -f LATIN1 -t UTF-8'.",
            ) from error
        numbers.append(rest)
    values = _floats(b" ".join(numbers))
    if values is None or values.size != len(lines) * dimension or not np.isfinite(values).all():
        _complain(lines, numbers, dimension, source)
        raise AssertionError("a block is wrong, and none of its lines")
    return VectorBlock(words, values.reshape(len(lines), dimension))


def _floats(text: bytes) -> FloatArray | None:
    """The numbers of a text parted by spaces, float32; None if something in it is not a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            # Beyond float32's range, a number becomes infinite, which the caller refuses.
            with np.errstate(over="ignore"):
                return np.fromstring(text, dtype=np.float64, sep=" ").astype(np.float32)
        except (DeprecationWarning, ValueError):
            return None


def _split_unusual(line: bytes, dimension: int, source: VectorSource, position: int) -> tuple[bytes, bytes]:
    """Word and numbers of a line that is not parted by single spaces, or whose word has spaces."""
    fields = line.split()
    extra = len(fields) - dimension - 1
    if extra < 0 or any(_is_number(field) for field in fields[1 : extra + 1]):
        raise _ragged(line, dimension, source, position)
    return b" ".join(fields[: extra + 1]), b" ".join(fields[extra + 1 :])


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _ragged(line: bytes, dimension: int, source: VectorSource, position: int) -> InputError:
    found = max(len(line.split()) - 1, 0)
    return InputError(
        f"{found} numbers behind the word, not {dimension}" if line.strip() else "a blank line",
        source.path,
        source.line_of(position),
        _FIX_LINE.format(dimension),
    )


def _complain(lines: list[bytes], numbers: list[bytes], dimension: int, source: VectorSource) -> None:
    """Raise the InputError of the first line that is wrong."""
    for position, text in enumerate(numbers):
        for field in text.split():
            if not _is_number(field) or (values := _floats(field)) is None or values.size != 1:
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
