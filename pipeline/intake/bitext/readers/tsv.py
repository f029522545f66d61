"""Reads TSV, in which quotation marks are text, and CSV, in which they quote fields."""

import csv
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.base.text.lines import LineBlock, Reading, line_blocks
from paraforge.intake.bitext.source import CODES, ONLY, Block, SeparatedSource, parse_scores, reason_codes

# The separator is guessed from this many rows, including a header, within this many bytes.
_ROWS, _FIRST_BYTES = 1_001, 1 << 18
# Rows at a time of a file with quotation marks.
_MOST_ROWS = 50_000

_Line = tuple[int, str, int]
"""Number, text, and code (see :attr:`Block.codes`) of a line."""


class TsvSource(SeparatedSource):
    """Tab-separated columns without quoting."""

    format: Literal["tsv"]

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """See :func:`read_separated`."""
        return read_separated(paths[ONLY], self.columns, reading, header=self.header)


class CsvSource(SeparatedSource):
    """Comma-separated values; fields can be quoted and contain line breaks.

    A row has at most a megabyte, and a field at most 131,072 characters.
    """

    format: Literal["csv"]
    header: bool = Field(True, description="whether the first line names the columns")
    separator: Literal[",", ";", "\t"] = Field(",", description="the character between two fields")

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """See :func:`read_separated`."""
        return read_separated(
            paths[ONLY], self.columns, reading, header=self.header, separator=self.separator
        )


@dataclass
class Rows:
    """Consecutive rows of a file.

    numbers: number of each row's first line. fields: each row's fields; none if the row cannot be read.
    codes: see :attr:`Block.codes`. blank: which rows are empty lines.
    """

    numbers: NDArray[np.int64]
    fields: pa.ListArray
    codes: NDArray[np.uint8]
    blank: NDArray[np.bool_]


def read_separated(
    path: Path,
    columns: Mapping[str, int | str],
    reading: Reading,
    *,
    header: bool = False,
    separator: str | None = None,
) -> Iterator[Block]:
    """Read a CSV or TSV file. An empty line is a blank row.

    columns: column of each text and of ``score``: a number from 0, or a name in the header.
    header: whether the first line names the columns. separator: see :func:`separated_rows`.

    Raises InputError if :func:`separated_rows` does, if a column is missing, or if a quotation mark in the
    first row is not closed; in a strict reading, also if the rows have different numbers of columns, or if a
    score is not a number.
    """
    places: dict[str, int] = {}
    width = 0
    for rows in separated_rows(path, reading, separator):
        skipped = 0
        if not places:
            first = rows.fields[0].as_py()
            if rows.codes[0] == CODES["overlong_line"]:
                problem = (
                    f"the line is longer than {reading.max_line_bytes:,} bytes, so its columns are unknown"
                )
                raise InputError(problem, path, int(rows.numbers[0]), "Correct the line, or remove it.")
            if not first:
                raise InputError(
                    "a quotation mark is opened and not closed in a row with the expected number of columns",
                    path,
                    int(rows.numbers[0]),
                    "Close it, double it if it is text, or use format: tsv, where quotes are text.",
                )
            places, width, skipped = _places(path, columns, first, header), len(first), int(header)
        yield _block(path, rows, skipped, places, width, reading.strict)


def _places(path: Path, columns: Mapping[str, int | str], first: list[str], header: bool) -> dict[str, int]:
    names = first if header else []
    doubt = None
    if len(first) == 1:
        doubt = "Does this file have another separator? tsv needs tabs; csv needs commas, or set 'separator'."
    places = {}
    for name, column in columns.items():
        if isinstance(column, str):
            if names.count(column) != 1:
                problem = "no column" if column not in names else "more than one column"
                told = f"{problem} {column!r} for {name}; the header has {', '.join(names)}"
                raise InputError(told, path, 1, doubt)
            places[name] = names.index(column)
        elif column < len(first):
            places[name] = column
        else:
            problem = f"no column {column} for {name}: the first line has {len(first)}, counted from 0"
            raise InputError(problem, path, 1, doubt)
    return places


def _block(
    path: Path, lines: Rows, skipped: int, places: Mapping[str, int], width: int, strict: bool
) -> Block:
    fields = lines.fields[skipped:]
    widths = fields.value_lengths().to_numpy()
    starts = fields.offsets.to_numpy()[:-1]
    texts = {}
    for name, place in places.items():
        at = pa.array(starts + place, mask=widths <= place)  # null if the row has no such field
        texts[name] = pc.fill_null(fields.values.take(at), "")
    rows = Block(lines.numbers[skipped:], texts, lines.codes[skipped:])

    def problem(row: int) -> str:
        if not widths[row]:
            return f"unbalanced quotation marks, or not {counted(width, 'column')}"
        return f"{counted(int(widths[row]), 'column')}, but the first line has {width}"

    rows.reject((widths != width) & ~lines.blank[skipped:], "malformed", path, strict, problem)
    if "score" in texts:
        rows.scores = parse_scores(texts.pop("score"), rows, path, strict)
    return rows


def separator_of(path: Path) -> str:
    """Return the separator of a CSV file: with it, most rows have as many columns as the first row."""
    return max(",;\t", key=lambda separator: len(even_rows(path, separator)))


def even_rows(path: Path, separator: str | None) -> list[list[str]]:
    """Return those of the first rows that have as many columns as the first one; none if it has one column.

    separator: see :func:`separated_rows`.
    """
    rows = next(separated_rows(path, Reading(strict=False, block_bytes=_FIRST_BYTES), separator))
    cells = rows.fields.filter(pa.array(rows.codes == 0))[:_ROWS].to_pylist()
    return [row for row in cells if len(row) == len(cells[0]) > 1]


def separated_rows(path: Path, reading: Reading, separator: str | None) -> Iterator[Rows]:
    """Yield the rows of a file; a row has one line or, with quoted line breaks, several.

    If a line's quotation marks are unbalanced, or would make a row of several lines with the wrong number of
    columns, only that line is malformed, and the next line starts a new row.

    separator: the character between quoted fields; None for tabs, with quotation marks as text.
    Raises InputError if :func:`paraforge.base.text.lines.line_blocks` does.
    """
    quotes_are_text, separator = separator is None, separator or "\t"
    blocks, ahead, width = line_blocks(path, reading), deque[_Line](), 0

    def lines(row_lines: list[_Line]) -> Iterator[str]:
        """Yield and collect the lines of one row, at most ``max_line_bytes``; a faulty line comes alone."""
        size = 0
        while True:
            if not ahead:
                ahead.extend(next(map(_lines, blocks), ()))
            if not ahead:
                return
            size += len(ahead[0][1].encode()) + 1
            if row_lines and (size > reading.max_line_bytes or row_lines[0][2]):
                return
            row_lines.append(ahead.popleft())
            yield f"{row_lines[-1][1]}\n"

    while True:
        if not ahead:
            block = next(blocks, None)
            if block is None:
                return
            if quotes_are_text or not pc.any(pc.match_substring(block.lines, '"')).as_py():
                width = width or len(block.lines[0].as_py().split(separator))
                blank = pc.equal(block.lines, "").to_numpy(zero_copy_only=False)
                fields = pc.split_pattern(block.lines, separator)
                yield Rows(block.numbers, fields, reason_codes(block), blank)
                continue
            ahead.extend(_lines(block))
        rows: list[tuple[int, list[str], int, bool]] = []
        while ahead and len(rows) < _MOST_ROWS:
            number, line, code = ahead[0]
            if '"' not in line:
                cells = line.split(separator)
                ahead.popleft()
            else:
                cells, row_lines = [], list[_Line]()
                with suppress(csv.Error):
                    cells = next(csv.reader(lines(row_lines), delimiter=separator, strict=True))
                if not cells or (len(row_lines) > 1 and len(cells) != (width or len(cells))):
                    ahead.extendleft(reversed(row_lines[1:]))
                    cells, row_lines = [], row_lines[:1]
                code = max(code for _, _, code in row_lines)
            rows.append((number, cells, code, not line))
            width = width or len(cells)
        numbers, every, codes, empty = zip(*rows, strict=True)
        yield Rows(
            np.array(numbers, np.int64),
            pa.array(every, pa.list_(pa.string())),
            np.array(codes, np.uint8),
            np.array(empty, bool),
        )


def _lines(block: LineBlock) -> Iterator[_Line]:
    return zip(block.numbers.tolist(), block.lines.to_pylist(), reason_codes(block).tolist(), strict=True)
