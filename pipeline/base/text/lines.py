"""Reads text files as blocks of lines (split only at line feeds, checked UTF-8) in bounded memory, and rows
of fields and numbers."""

from __future__ import annotations

import codecs
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.text.compression import read_ahead, refuse_binary

PIPE = Path("-")
BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 1 << 20
# How much is kept of a line over the limit: enough to recognize it among the rejected rows.
_KEPT_BYTES = 16_384
_TO_UTF8 = "Convert it from its encoding, such as CP1252: iconv -f CP1252 -t UTF-8 OLD > NEW."
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Lines to search for the place where parallel files lose their alignment, and for a blank line near it.
_LINES_COMPARED = 5_000_000
_NEARBY = 5


# Counts of changes in accepted text, e.g. {"crlf": 12}, so that nothing is silent.
Changes = Counter[str]
# What can be wrong with a line, numbered from 1.
FAULTS = ("invalid_utf8", "overlong_line")
INVALID_UTF8, OVERLONG_LINE = 1, 2


@dataclass
class Reading:
    """How files are read, and what was changed while reading.

    strict: whether something unreadable (a line that is not UTF-8, a malformed row) is an error; otherwise it
        is marked.
    max_line_bytes: longest line that is read whole. block_bytes: how much text is read at a time.
    changes: where changes are counted.
    """

    strict: bool = True
    max_line_bytes: int = MAX_LINE_BYTES
    block_bytes: int = BLOCK_BYTES
    changes: Changes = field(default_factory=Counter)


@dataclass
class LineBlock:
    """Consecutive lines of a file.

    first: number of the first line, from 1. lines: string array of the lines without their line ends.
    faults: what is wrong with each line, as a number of :data:`FAULTS`; 0 for a good line.
    """

    first: int
    lines: pa.Array
    faults: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Number of each line in its file, from 1."""
        return np.arange(self.first, self.first + len(self), dtype=np.int64)

    def slice(self, start: int, length: int) -> LineBlock:
        """Return a slice of the lines without copying."""
        return LineBlock(
            self.first + start, self.lines.slice(start, length), self.faults[start : start + length]
        )


def line_blocks(path: Path, reading: Reading | None = None) -> Iterator[LineBlock]:
    """Read a text file, decompressed, or for ``-`` standard input.

    A line ends at a line feed. A carriage return just before it, or before the end of the file, belongs to
    the line end (counted as ``crlf``). The last line needs no line feed, and no other character ends a line.
    A byte order mark at the beginning is dropped (``byte_order_mark``). A line over ``max_line_bytes`` bytes
    is cut to its beginning.

    reading: how it is read; strictly by default.

    Raises InputError if the file is empty, missing, damaged, truncated or binary, or, in a strict reading, if
    a line is not UTF-8.
    """
    reading = reading or Reading()
    splitter = _Splitter(path, reading)
    rest = b""  # the incomplete last line
    overlong = False  # whether that line is over the limit
    begun = False
    data_blocks = _arriving(reading) if path == PIPE else read_ahead(path, reading.block_bytes)
    for data in data_blocks:
        if not begun:
            refuse_binary(path, data[:5])
            if data.startswith(_BYTE_ORDER_MARK):
                reading.changes["byte_order_mark"] += 1
                data = data[len(_BYTE_ORDER_MARK) :]
            begun = True
        if overlong:
            end = data.find(b"\n")
            if end < 0:
                continue
            data = data[end:]
        data = rest + data
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if cut:
            yield splitter.split(data[:cut], overlong)
            overlong = False
        if len(rest) - rest.endswith(b"\r") > reading.max_line_bytes:
            rest, overlong = _beginning(rest), True
    if rest:
        if splitter.next_line == 1 and rest.rstrip(b"\r").count(b"\r"):
            raise InputError(
                "lines end in carriage returns alone, as on old Macintoshes",
                path,
                remedy="Convert it: tr '\\r' '\\n' < OLD > NEW.",
            )
        yield splitter.split(rest + b"\n", overlong)
    if splitter.next_line == 1:
        raise InputError("the file is empty", path)


def _arriving(reading: Reading) -> Iterator[bytes]:
    """Yield what has arrived at standard input, which can be slow; the first four bytes come together."""
    pipe: Any = sys.stdin.buffer
    yield pipe.read(4)
    yield from iter(lambda: pipe.read1(reading.block_bytes), b"")


class _Splitter:
    def __init__(self, path: Path, reading: Reading) -> None:
        self.path = path
        self.reading = reading
        self.next_line = 1

    def split(self, data: bytes, first_is_overlong: bool) -> LineBlock:
        if b"\r\n" in data:
            self.reading.changes["crlf"] += data.count(b"\r\n")
            data = data.replace(b"\r\n", b"\n")
        whole = pa.array([data[:-1]], pa.binary())
        try:
            lines = pc.split_pattern(whole.cast(pa.string()), "\n").values
            faults = np.zeros(len(lines), dtype=np.uint8)
        except pa.ArrowInvalid:
            lines, faults = self._decode(data[:-1].split(b"\n"))
        lengths = pc.binary_length(lines).to_numpy()
        overlong = lengths > self.reading.max_line_bytes
        if overlong.any():
            cut = [_beginning(lines[row].as_py().encode()) for row in np.flatnonzero(overlong)]
            lines = pc.replace_with_mask(
                lines, pa.array(overlong), pa.array(cut, pa.binary()).cast(pa.string())
            )
        overlong[0] |= first_is_overlong
        faults[overlong] = OVERLONG_LINE
        block = LineBlock(self.next_line, lines, faults)
        self.next_line += len(lines)
        return block

    def _decode(self, raw: list[bytes]) -> tuple[pa.Array, NDArray[np.uint8]]:
        faults = np.zeros(len(raw), dtype=np.uint8)
        texts = []
        for row, line in enumerate(raw):
            try:
                texts.append(line.decode("utf-8"))
            except UnicodeDecodeError as error:
                if self.reading.strict:
                    raise InputError(
                        f"not UTF-8: byte 0x{line[error.start]:02X} at byte {error.start + 1} of the line",
                        self.path,
                        self.next_line + row,
                        f"{_TO_UTF8} In a bitext, ingest can instead reject and count such rows "
                        "(ingest.cleaning.malformed: reject).",
                    ) from error
                faults[row] = INVALID_UTF8
                texts.append(line.decode("utf-8", "replace"))
        return pa.array(texts, pa.string()), faults


def _beginning(line: bytes) -> bytes:
    """Return the first bytes of a line that may be longer, cut between characters."""
    kept, _ = codecs.utf_8_decode(line[:_KEPT_BYTES], "surrogateescape", False)
    return kept.encode("utf-8", "surrogateescape")


def paired_blocks(
    paths: Mapping[str, Path], reading: Reading | None = None
) -> Iterator[dict[str, LineBlock]]:
    """Read parallel text files in step, as blocks of the same lines of each.

    paths: a file for each name. reading: how they are read; strictly by default.

    Raises InputError as :func:`line_blocks`, and if the files do not have the same number of lines.
    """
    readers = {name: line_blocks(path, reading) for name, path in paths.items()}
    current: dict[str, LineBlock | None] = {name: next(reader, None) for name, reader in readers.items()}
    while True:
        ended = [name for name, block in current.items() if block is None]
        if len(ended) == len(current):
            return
        if ended:
            in_step = min(block.first for block in current.values() if block is not None) - 1
            counts = dict.fromkeys(ended, in_step)
            for name, last in current.items():
                if last is not None:
                    for further in readers[name]:
                        last = further
                    counts[name] = last.first + len(last) - 1
            raise _unequal(paths, counts)
        blocks = {name: block for name, block in current.items() if block is not None}
        count = min(map(len, blocks.values()))
        yield {name: block.slice(0, count) for name, block in blocks.items()}
        for name, block in blocks.items():
            left = len(block) - count
            current[name] = block.slice(count, left) if left else next(readers[name], None)


def _unequal(paths: Mapping[str, Path], counts: Mapping[str, int]) -> InputError:
    told = ", ".join(f"{paths[name]} has {count:,}" for name, count in counts.items())
    (short, fewest), *_, (long, most) = sorted(counts.items(), key=lambda item: item[1])
    where = _out_of_step(paths[short], paths[long], most - fewest)
    return InputError(
        f"the parallel files do not have the same number of lines: {told}",
        paths[short],
        fewest,
        remedy=f"{where} Correct the files: all lines after the missing one have the wrong partners.",
    )


def _out_of_step(short: Path, long: Path, missing: int) -> str:
    """Return a sentence on where the shorter of two files lost its alignment: lines before fit as they are,
    and later lines fit if they are shifted by the number of missing lines."""
    first, second = (_line_lengths(path) for path in (short, long))
    if len(first) >= _LINES_COMPARED:
        return f"Files of more than {_LINES_COMPARED:,} lines are not searched for the missing line."
    scale = max(np.median(first), 1) / max(np.median(second), 1)
    unlike = [
        np.abs(np.log1p(first) - np.log1p(scale * second[moved : moved + len(first)]))
        for moved in (0, missing)
    ]
    cost = np.concatenate(([0], np.cumsum(unlike[0] - unlike[1])))
    place = len(first) - int(np.argmin(cost[::-1]))
    near = range(max(place - _NEARBY, 0), min(place + _NEARBY, len(first)))
    blank = [line for line in near if (first[line] == 0) != (second[line] == 0)]
    if blank:
        path = short if first[blank[0]] == 0 else long
        return (
            f"Line {blank[0] + 1:,} of {path} is blank, and its partner is not: they are out of step there."
        )
    if place == len(first):
        return f"They seem to be in step up to the end of {short}; what follows has no partner."
    return f"They seem to be out of step from about line {place + 1:,} on, where lengths no longer fit."


def _line_lengths(path: Path) -> NDArray[np.int64]:
    """Return the number of characters of each of a file's first lines, without blanks at the ends."""
    lengths: list[NDArray[np.int64]] = []
    for block in line_blocks(path, Reading(strict=False)):
        lengths.append(pc.utf8_length(pc.utf8_trim_whitespace(block.lines)).to_numpy().astype(np.int64))
        if sum(map(len, lengths)) >= _LINES_COMPARED:
            break
    return np.concatenate(lengths)


def numbered_lines(path: Path, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Yield number (from 1) and text of each line of a UTF-8 file, plain or compressed, split at line feeds
    alone.

    blank: whether blank lines are included.

    Raises InputError if the file is empty or cannot be read, or, with its number, if a line is not UTF-8 or
    too long.
    """
    for first, lines in lists_of_lines(path):
        for number, text in enumerate(lines, start=first):
            text = text.rstrip("\r")
            if blank or text.strip(" \t"):
                yield number, text


def lists_of_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a text file in lists, each with the number of its first line.

    Raises the errors of :func:`numbered_lines`, after all lines before the error.
    """
    for block in whole_lines(path):
        yield block.first, block.lines.to_pylist()


def whole_lines(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """Yield the lines of a text file as blocks. Raises the errors of :func:`numbered_lines`."""
    for block in line_blocks(path, Reading(strict=False, block_bytes=block_bytes)):
        bad = np.flatnonzero(block.faults)
        if not len(bad):
            yield block
            continue
        if bad[0]:
            yield block.slice(0, int(bad[0]))
        number = block.first + int(bad[0])
        if block.faults[bad[0]] == OVERLONG_LINE:
            raise InputError(f"a line of more than {MAX_LINE_BYTES:,} bytes", path, number)
        raise InputError("not UTF-8 text", path, number, _TO_UTF8)


Row = tuple[int, list[str]]
"""Line number and fields."""


def finite_number(text: str | bytes) -> float | None:
    """Return the number in a field, or None if there is none or it is not finite."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
