"""Text files as blocks of lines: split at line feeds alone, checked UTF-8, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.bitext.block import Changes
from paraforge.bitext.reasons import CODES
from paraforge.errors import InputError
from paraforge.text.compression import read_ahead, refuse_binary

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 1 << 20
# What is kept of a line over the limit: enough to be recognised in the corpus of refused rows.
_KEPT_BYTES = 16_384
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDTHS = ((2, 0xE0, 0xC0), (3, 0xF0, 0xE0), (4, 0xF8, 0xF0))


@dataclass
class LineBlock:
    """Consecutive lines of a file.

    Attributes:
        first: number of the first of them, from 1.
        lines: string array of the lines without their ends.
        codes: ``invalid_utf8`` or ``overlong_line`` by its code, 0 for a good line.
    """

    first: int
    lines: pa.Array
    codes: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Number of each line in its file, from 1."""
        return np.arange(self.first, self.first + len(self), dtype=np.int64)

    def slice(self, start: int, length: int) -> LineBlock:
        """Some of the lines; nothing is copied."""
        return LineBlock(
            self.first + start, self.lines.slice(start, length), self.codes[start : start + length]
        )


def line_blocks(
    path: Path,
    changes: Changes,
    *,
    strict: bool,
    max_line_bytes: int = MAX_LINE_BYTES,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[LineBlock]:
    """Read a text file, decompressed.

    A line ends at a line feed; a carriage return just before it, or before the end of the file, belongs to
    the line end (counted as ``crlf``), and the last line need not end. No other character ends a line. A
    byte order mark at the beginning is dropped (``byte_order_mark``). Of a line over ``max_line_bytes`` bytes
    only the beginning is kept.

    Args:
        path: the file.
        changes: where changes are counted.
        strict: whether a line that is not UTF-8 is an error or only marked.
        max_line_bytes: longest line that is read whole.
        block_bytes: how much is read at a time.

    Raises:
        InputError: an empty, missing, damaged or truncated file; binary data; with ``strict`` a line that is
            not UTF-8.
    """
    splitter = _Splitter(path, changes, strict, max_line_bytes)
    rest = b""  # of a line that is not complete yet
    overlong = False  # whether that line is over the limit
    begun = False
    for data in read_ahead(path, block_bytes):
        if not begun:
            refuse_binary(path, data[:4])
            if data.startswith(_BYTE_ORDER_MARK):
                changes["byte_order_mark"] += 1
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
        if len(rest) > max_line_bytes:
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


class _Splitter:
    """Cuts bytes that end with a line feed into lines."""

    def __init__(self, path: Path, changes: Changes, strict: bool, max_line_bytes: int) -> None:
        self.path = path
        self.changes = changes
        self.strict = strict
        self.max_line_bytes = max_line_bytes
        self.next_line = 1

    def split(self, data: bytes, first_is_overlong: bool) -> LineBlock:
        if b"\r\n" in data:
            self.changes["crlf"] += data.count(b"\r\n")
            data = data.replace(b"\r\n", b"\n")
        whole = pa.array([data[:-1]], pa.binary())
        try:
            lines = pc.split_pattern(whole.cast(pa.string()), "\n").values
            codes = np.zeros(len(lines), dtype=np.uint8)
        except pa.ArrowInvalid:
            lines, codes = self._mend(data[:-1].split(b"\n"))
        lengths = pc.binary_length(lines).to_numpy()
        overlong = lengths > self.max_line_bytes
        if overlong.any():
            cut = [_beginning(lines[row].as_py().encode()) for row in np.flatnonzero(overlong)]
            lines = pc.replace_with_mask(
                lines, pa.array(overlong), pa.array(cut, pa.binary()).cast(pa.string())
            )
        overlong[0] |= first_is_overlong
        codes[overlong] = CODES["overlong_line"]
        block = LineBlock(self.next_line, lines, codes)
        self.next_line += len(lines)
        return block

    def _mend(self, raw: list[bytes]) -> tuple[pa.Array, NDArray[np.uint8]]:
        codes = np.zeros(len(raw), dtype=np.uint8)
        texts = []
        for row, line in enumerate(raw):
            try:
                texts.append(line.decode("utf-8"))
            except UnicodeDecodeError as error:
                if self.strict:
                    raise InputError(
                        f"not UTF-8: byte 0x{line[error.start]:02X} at byte {error.start + 1} of the line",
                        self.path,
                        self.next_line + row,
                        "Convert the file (iconv -f CP1250 -t UTF-8, say), or set ingest.cleaning.malformed "
                        "to 'reject' to have such rows counted and left out.",
                    ) from error
                codes[row] = CODES["invalid_utf8"]
                texts.append(line.decode("utf-8", "replace"))
        return pa.array(texts, pa.string()), codes


def _beginning(line: bytes) -> bytes:
    """The first bytes of a line that may go on, cut between characters."""
    kept = line[:_KEPT_BYTES]
    lead = len(kept) - 1
    while lead > len(kept) - 4 and lead > 0 and kept[lead] & 0xC0 == 0x80:
        lead -= 1
    # The last character's first byte says how many bytes it has.
    width = next((n for n, mask, bits in _WIDTHS if kept[lead] & mask == bits), 1)
    return kept if len(kept) - lead >= width else kept[:lead]


def paired_blocks(
    paths: dict[str, Path],
    changes: Changes,
    *,
    strict: bool,
    max_line_bytes: int = MAX_LINE_BYTES,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[dict[str, LineBlock]]:
    """Read parallel text files in step: blocks of the same lines of each.

    Args:
        paths: a file for each name.
        changes, strict, max_line_bytes, block_bytes: see :func:`line_blocks`.

    Raises:
        InputError: see :func:`line_blocks`; and files that do not have the same number of lines.
    """
    readers = {
        name: line_blocks(
            path, changes, strict=strict, max_line_bytes=max_line_bytes, block_bytes=block_bytes
        )
        for name, path in paths.items()
    }
    current: dict[str, LineBlock | None] = {name: next(reader, None) for name, reader in readers.items()}
    while True:
        ended = [name for name, block in current.items() if block is None]
        if len(ended) == len(current):
            return
        if ended:
            raise _unequal(paths, readers, current)
        blocks = {name: block for name, block in current.items() if block is not None}
        count = min(map(len, blocks.values()))
        yield {name: block.slice(0, count) for name, block in blocks.items()}
        for name, block in blocks.items():
            left = len(block) - count
            current[name] = block.slice(count, left) if left else next(readers[name], None)


def _unequal(
    paths: dict[str, Path], readers: dict[str, Iterator[LineBlock]], current: dict[str, LineBlock | None]
) -> InputError:
    counts: dict[str, int | None] = {}
    for name, block in current.items():
        if block is None:
            counts[name] = None
            continue
        last = block.first + len(block) - 1
        for further in readers[name]:
            last = further.first + len(further) - 1
        counts[name] = last
    # A file that has ended has as many lines as the others had in step with it.
    in_step = min(block.first for block in current.values() if block is not None) - 1
    told = ", ".join(f"{paths[name]} has {count or in_step:,}" for name, count in counts.items())
    short = next(name for name, count in counts.items() if count is None)
    return InputError(
        f"the parallel files do not have the same number of lines: {told}",
        paths[short],
        in_step,
        remedy=f"Line {in_step + 1:,} and what follows have no partner: find where they went out of step.",
    )


def numbered_lines(path: Path, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line of a UTF-8 file, plain or compressed, split at line feeds alone.

    Args:
        path: the file.
        blank: whether blank lines are given too.

    Raises:
        InputError: the file is empty or cannot be read; with its number a line that is not UTF-8 or too long.
    """
    for block in line_blocks(path, Counter(), strict=False):
        bad = np.flatnonzero(block.codes)
        first_bad = int(bad[0]) if len(bad) else len(block)
        for number, text in enumerate(block.lines.slice(0, first_bad).to_pylist(), start=block.first):
            text = text.rstrip("\r")
            if blank or text.strip(" \t"):
                yield number, text
        if len(bad):
            number = block.first + first_bad
            if block.codes[first_bad] == CODES["overlong_line"]:
                raise InputError(f"a line of more than {MAX_LINE_BYTES:,} bytes", path, number)
            remedy = "Convert the file, e.g. with 'iconv -f LATIN1 -t UTF-8'."
            raise InputError("not UTF-8 text", path, number, remedy)
