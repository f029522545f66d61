"""Reads TSV, in which quotation marks are text, and CSV, in which they quote fields."""

import csv
from collections.abc import Collection, Iterator, Mapping
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
from paraforge.base.text.lines import LineBlock, Reading, line_blocks
from paraforge.intake.bitext.block import REJECT_MALFORMED, Block, parse_scores, reason_codes
from paraforge.intake.bitext.source import ONLY, SeparatedSource, Where


class TsvSource(SeparatedSource):
    """Tab-separated columns without quoting."""

    format: Literal["tsv"]

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """See :func:`read_separated`."""
        return read_separated(paths[ONLY], self.columns, reading, header=self.header, where=self.where)


class CsvSource(SeparatedSource):
    """Comma-separated values; fields can be quoted and contain line breaks.

    A row has at most max_line_bytes, and a field at most 131,072 characters.
    """

    format: Literal["csv"]
    header: bool = Field(True, description="whether the first line names the columns")
    separator: Literal[",", ";"] = Field(",", description="the character between two fields")

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """See :func:`read_separated`."""
        return read_separated(
            paths[ONLY],
            self.columns,
            reading,
            header=self.header,
            where=self.where,
            separator=self.separator,
        )


def read_separated(
    path: Path,
    columns: Mapping[str, int | str],
    reading: Reading,
    *,
    header: bool = False,
    where: Where | None = None,
    separator: str = "\t",
) -> Iterator[Block]:
    """Read a file of rows. Every row has as many columns as the first; an empty line is a blank row.

    A row has the number of its first line. If quotation marks do not match, or do not close within a row of
    the right number of columns, only that line is malformed, and the next line starts a row.

    columns: the column of each text and of ``score``: a number from 0, or a name in the header.
    reading: how it is read. header: whether the first line names the columns.
    where: conditions on rows; the others are rejected as ``not_selected``.
    separator: a tab, or the separator of a file with quoted fields.

    Raises InputError: see :func:`paraforge.base.text.lines.line_blocks`; a column that is not there; in a
        strict reading, a row with another number of columns or a score that is not a number.
    """
    wanted = dict(columns) if where is None else {**columns, "where": where.column}
    places: dict[str, int] | None = None
    width = 0
    for found in _read_rows(path, reading, separator):
        if places is None:
            first = found.fields[0].as_py()
            width = len(first)
            if not width:
                raise InputError(
                    "a quotation mark is opened and not closed in a row with the expected number of columns",
                    path,
                    int(found.numbers[0]),
                    "Close it, double it if it is text, or use format: tsv, where quotes are text.",
                )
            places = _places(path, wanted, first, header)
            if header:
                found = found.slice(1)
        rows = _split(path, found, places, width, reading.strict)
        if where is not None:
            rows.refuse(~where.holds(rows.texts.pop("where")), "not_selected")
        if "score" in rows.texts:
            rows.scores = parse_scores(rows.texts.pop("score"), rows, path, reading.strict)
        yield rows


def _places(
    path: Path, wanted: Mapping[str, int | str], first: Collection[str], header: bool
) -> dict[str, int]:
    names = list(first) if header else []
    places = {}
    for name, column in wanted.items():
        if isinstance(column, str):
            if names.count(column) != 1:
                problem = "no column" if column not in names else "more than one column"
                raise InputError(
                    f"{problem} {column!r} for {name}; the header has {', '.join(names)}", path, 1
                )
            places[name] = names.index(column)
        elif column < len(first):
            places[name] = column
        else:
            doubt = "Does this file have another separator? tsv has tabs, csv commas or semicolons."
            raise InputError(
                f"no column {column} for {name}: the first line has {len(first)}, counted from 0",
                path,
                1,
                doubt if len(first) == 1 else None,
            )
    return places


@dataclass
class _Rows:
    """Consecutive rows of a file.

    numbers: first line of each row. fields: list of each row's fields; empty if it cannot be read.
    codes: why a row is rejected; see :class:`Block`. blank: which rows are empty lines.
    """

    numbers: NDArray[np.int64]
    fields: pa.ListArray
    codes: NDArray[np.uint8]
    blank: NDArray[np.bool_]

    def slice(self, start: int) -> "_Rows":
        return _Rows(self.numbers[start:], self.fields[start:], self.codes[start:], self.blank[start:])


def _plain(block: LineBlock, separator: str) -> _Rows:
    blank = pc.equal(block.lines, "").to_numpy(zero_copy_only=False)
    return _Rows(block.numbers, pc.split_pattern(block.lines, separator), reason_codes(block), blank)


def _read_rows(path: Path, reading: Reading, separator: str) -> Iterator[_Rows]:
    """Yield rows; a row has one line or, with quotation marks, several, even across blocks."""
    joiner = _Joiner(separator, reading.max_line_bytes)
    for block in line_blocks(path, reading):
        quoted = separator != "\t" and pc.any(pc.match_substring(block.lines, '"')).as_py()
        if not joiner.lines and not quoted:
            joiner.width = joiner.width or len(block.lines[0].as_py().split(separator))
            yield _plain(block, separator)
        else:
            joiner.add(block)
            if rows := joiner.rows(last=False):
                yield rows
    if rows := joiner.rows(last=True):
        yield rows


class _Joiner:
    """Lines that are not rows yet, with their numbers and codes. width: number of fields in the first row."""

    def __init__(self, separator: str, limit: int) -> None:
        self.separator = separator
        self.limit = limit
        self.width = 0
        self.lines: list[str] = []
        self._numbers: list[int] = []
        self._codes: list[int] = []

    def add(self, block: LineBlock) -> None:
        self.lines += block.lines.to_pylist()
        self._numbers += block.numbers.tolist()
        self._codes += reason_codes(block).tolist()

    def rows(self, last: bool) -> _Rows | None:
        """Return the complete rows, or all of them at the end of the file; None if there are none."""
        place = 0
        starts, fields, codes = [], [], []
        while place < len(self.lines):
            row, count = self._row(place, last)
            if not count:
                break
            self.width = self.width or len(row)
            starts.append(place)
            fields.append(row)
            codes.append(max(self._codes[place : place + count]))
            place += count
        blank = [not self.lines[start] for start in starts]
        found = _Rows(
            np.array([self._numbers[start] for start in starts], np.int64),
            pa.array(fields, pa.list_(pa.string())),
            np.array(codes, np.uint8),
            np.array(blank, bool),
        )
        del self.lines[:place], self._numbers[:place], self._codes[:place]
        return found if starts else None

    def _row(self, place: int, last: bool) -> tuple[list[str], int]:
        """Return the fields of the row that begins at a line, and its number of lines; none if it needs the
        next block."""
        line = self.lines[place]
        if '"' not in line:
            return line.split(self.separator), 1
        with suppress(csv.Error):
            return next(csv.reader((line,), delimiter=self.separator, strict=True)), 1
        reader = csv.reader(self._from(place), delimiter=self.separator, strict=True)
        with suppress(csv.Error):
            fields = next(reader)
            if len(fields) == (self.width or len(fields)):
                return fields, reader.line_num
        return [], int(last or place + reader.line_num < len(self.lines))

    def _from(self, place: int) -> Iterator[str]:
        """Yield the lines of one row at most; a faulty line is a row of its own."""
        size = 0
        for number in range(place, len(self.lines)):
            size += len(self.lines[number].encode()) + 1
            if number > place and (size > self.limit or self._codes[place]):
                return
            yield f"{self.lines[number]}\n"


def _split(path: Path, found: _Rows, places: Mapping[str, int], width: int, strict: bool) -> Block:
    fields = found.fields
    widths = fields.value_lengths().to_numpy()
    starts = fields.offsets.to_numpy()[:-1]
    texts = {name: _column(fields.values, starts, widths, place) for name, place in places.items()}
    rows = Block(found.numbers, texts, found.codes)
    ragged = (widths != width) & (rows.codes == 0) & ~found.blank
    if strict and ragged.any():
        row = int(np.flatnonzero(ragged)[0])
        quoted = "quotation marks that do not fit, or " if not widths[row] else ""
        raise InputError(
            f"{quoted}{widths[row]} columns, the first line has {width}",
            path,
            int(rows.lines[row]),
            REJECT_MALFORMED,
        )
    rows.refuse(ragged, "malformed")
    return rows


def _column(values: pa.Array, starts: NDArray[np.int32], widths: NDArray[np.int32], place: int) -> pa.Array:
    """Return field ``place`` of each row; empty if the row has no such field."""
    missing = widths <= place
    if not missing.any():
        return values.take(pa.array(starts + place))
    return pc.fill_null(values.take(pa.array(starts + place, mask=missing)), "")
