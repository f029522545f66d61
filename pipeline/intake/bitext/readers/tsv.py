"""Tab-separated files, where quotes are text, and files of comma-separated values, where they are not."""

import csv
from collections.abc import Collection, Iterator, Mapping
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
    """Comma-separated values; a field may be in quotation marks. A row is one line."""

    format: Literal["csv"]
    header: bool = Field(True, description="whether the first line names the columns")
    separator: Literal[",", ";"] = Field(",", description="what is between two fields")

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

    columns: where each text column and ``score`` stand: a number from 0, or a name in the header.
    reading: how it is read. header: whether the first line names the columns.
    where: which rows are taken; the others are rejected as ``not_selected``. separator: a tab, or that of a
    file whose fields may be quoted.

    Raises InputError: see :func:`paraforge.base.text.lines.line_blocks`; a column that is not there; in a
    strict reading a row with another number of columns, or a score that is no number.
    """
    wanted = dict(columns) if where is None else {**columns, "where": where.column}
    places: dict[str, int] | None = None
    width = 0
    for block in line_blocks(path, reading):
        if places is None:
            first = _fields(block.lines[:1], separator).values.to_pylist()
            width = len(first)
            places = _places(path, wanted, first, header)
            if header:
                block = block.slice(1, len(block) - 1)
        rows = _split(path, block, _fields(block.lines, separator), places, width, reading.strict)
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


def _fields(lines: pa.Array, separator: str) -> pa.ListArray:
    """The fields of each line; none of a line whose quotation marks are not closed, or do not stand alone."""
    if separator == "\t" or not pc.any(pc.match_substring(lines, '"')).as_py():
        return pc.split_pattern(lines, separator)
    return pa.array([_unquoted(line, separator) for line in lines.to_pylist()], pa.list_(pa.string()))


def _unquoted(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def _split(
    path: Path, block: LineBlock, fields: pa.ListArray, places: Mapping[str, int], width: int, strict: bool
) -> Block:
    widths = fields.value_lengths().to_numpy()
    starts = fields.offsets.to_numpy()[:-1]
    texts = {name: _column(fields.values, starts, widths, place) for name, place in places.items()}
    rows = Block(block.numbers, texts, reason_codes(block))
    ragged = (widths != width) & (rows.codes == 0)
    if ragged.any():
        blank = pc.equal(block.lines, "").to_numpy(zero_copy_only=False)
        ragged &= ~blank
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
    """Field ``place`` of each row; empty where the row has no such field."""
    missing = widths <= place
    if not missing.any():
        return values.take(pa.array(starts + place))
    return pc.fill_null(values.take(pa.array(starts + place, mask=missing)), "")
