"""Fields of small tables as people keep them, CSV, TSV or between blanks, and the numbers in them."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path

from paraforge.base.text.lines import numbered_lines

_SEPARATORS = ("\t", ";", ",", None)
_DECIMAL_COMMA = re.compile(r"^(-?\d+),(\d+)$")
Row = tuple[int, list[str]]
"""Line number and fields."""


def read_fields(path: Path, least: int) -> list[Row]:
    """The rows of a file whose lines are separated by tabs, semicolons, commas or blanks, as the lines
    themselves show: by the first of these that cuts every line into as many fields, at least `least`, or the
    header into one less (the names of the columns behind the row's number, as R writes them; the header then
    gets a blank field). Without such a separator the first line decides. Fields may be quoted, and a number
    between semicolons may have a decimal comma.

    Raises InputError: see :func:`~paraforge.base.text.lines.numbered_lines`.
    """
    lines = list(numbered_lines(path))
    for separator in _SEPARATORS:
        rows = [(number, _split(text, separator)) for number, text in lines]
        counts = {len(fields) for _, fields in rows[1:]} or {len(rows[0][1]) if rows else 0}
        if len(counts) == 1 and (count := counts.pop()) >= least:
            first = rows[0][1]
            if len(first) == count - 1 and not any(finite_number(field) is not None for field in first):
                first.insert(0, "")
            if len(first) == count:
                return rows
    separator = next((mark for mark in _SEPARATORS if mark and lines and mark in lines[0][1]), None)
    return [(number, _split(text, separator)) for number, text in lines]


def _split(text: str, separator: str | None) -> list[str]:
    fields: Sequence[str] = text.split(separator)
    if '"' in text:
        with contextlib.suppress(csv.Error):
            fields = next(csv.reader([text.strip(" ")], delimiter=separator or " ", skipinitialspace=True))
    stripped = [field.strip(" ") for field in fields]
    return [_DECIMAL_COMMA.sub(r"\1.\2", field) for field in stripped] if separator == ";" else stripped


def finite_number(text: str | bytes) -> float | None:
    """The number that a field says, or None where it says none, or no finite one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
