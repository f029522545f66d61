"""Tab-separated files: columns are separated by tabs and nothing else; quotes are text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from paraforge.base.errors import InputError
from paraforge.base.text.lines import LineBlock, Reading, line_blocks
from paraforge.intake.bitext.block import REJECT_MALFORMED, Block, parse_scores, reason_codes
from paraforge.intake.bitext.source import ONLY, ColumnSource, Where


class TsvSource(ColumnSource):
    """Tab-separated columns without quoting."""

    format: Literal["tsv"]
    header: bool = Field(False, description="whether the first line names the columns")

    @model_validator(mode="after")
    def _allowed(self) -> TsvSource:
        named = [place for place in self._places() if isinstance(place, str)]
        if named and not self.header:
            raise ValueError(f"column {named[0]!r} is a name: that needs 'header: true', or give its number")
        if any(isinstance(place, int) and place < 0 for place in self._places()):
            raise ValueError("columns are counted from 0")
        return self

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """See :func:`read_tsv`."""
        return read_tsv(paths[ONLY], self.columns, reading, header=self.header, where=self.where)


def read_tsv(
    path: Path,
    columns: Mapping[str, int | str],
    reading: Reading,
    *,
    header: bool = False,
    where: Where | None = None,
) -> Iterator[Block]:
    """Read a tab-separated file. Every row has as many columns as the first; an empty line is a blank row.

    columns: where each text column and ``score`` stand: a number from 0, or a name in the header.
    reading: how it is read. header: whether the first line names the columns.
    where: which rows are taken; the others are refused as ``not_selected``.

    Raises InputError: see :func:`paraforge.base.text.lines.line_blocks`; a column that is not there; in a
    strict reading a row with another number of columns, or a score that is no number.
    """
    wanted = dict(columns) if where is None else {**columns, "where": where.column}
    places: dict[str, int] | None = None
    width = 0
    for block in line_blocks(path, reading):
        if places is None:
            first = block.lines[0].as_py().split("\t")
            width = len(first)
            places = _places(path, wanted, first, header)
            if header:
                block = block.slice(1, len(block) - 1)
        rows = _split(path, block, places, width, reading.strict)
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
            doubt = "Columns are separated by tabs: does this file have another separator?"
            raise InputError(
                f"no column {column} for {name}: the first line has {len(first)}, counted from 0",
                path,
                1,
                doubt if len(first) == 1 else None,
            )
    return places


def _split(path: Path, block: LineBlock, places: Mapping[str, int], width: int, strict: bool) -> Block:
    fields = pc.split_pattern(block.lines, "\t")
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
            raise InputError(
                f"{widths[row]} columns, the first line has {width}",
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
