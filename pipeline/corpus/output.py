"""Rows written as table, CSV, TSV, JSON, JSON lines or Parquet, batch by batch."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import pyarrow as pa

from paraforge.corpus.statement import Rows
from paraforge.errors import InputError
from paraforge.files import atomic_path
from paraforge.shards.store import parquet_writer

if TYPE_CHECKING:
    from rich.console import Console

TABLE, PARQUET = "table", "parquet"
SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".parquet": PARQUET}
FORMATS = (TABLE, *SUFFIXES.values())
_GROUP_ROWS = 50_000
# Of a table's column; with less, values are broken into unreadable pieces.
_LEAST_WIDTH = 12


def chosen_format(name: str | None, output: Path | None, otherwise: str = TABLE) -> str:
    """The format named, or that of the output file's ending.

    Raises:
        InputError: no such format, one that cannot go to the terminal, or an ending that says nothing.
    """
    if name is not None:
        if name not in FORMATS:
            raise InputError(f"no format '{name}'", remedy=f"There are {', '.join(FORMATS)}.")
        if name == PARQUET and output is None:
            raise InputError("Parquet cannot be shown", remedy="Add --output FILE.")
        return name
    if output is None:
        return otherwise
    if output.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"the ending '{output.suffix}' does not say which format",
            output,
            remedy=f"Use {', '.join(SUFFIXES)}, or add --format.",
        )
    return SUFFIXES[output.suffix.lower()]


def write_rows(rows: Rows, path: Path, kind: str) -> int:
    """Write all rows to a file, whole or not at all; gives their number."""
    with atomic_path(path) as temporary:
        if kind == PARQUET:
            return _write_parquet(rows, temporary)
        with temporary.open("w", encoding="utf-8", newline="") as file:
            return write_text(rows, file, kind)


def write_text(rows: Rows, file: IO[str], kind: str) -> int:
    """Write all rows as ``csv``, ``tsv``, ``json`` (one array) or ``jsonl``; gives their number.

    A missing value is an empty field, or null. Within a field of TSV, tabs and line ends become blanks.
    """
    writers: dict[str, Callable[[Rows, IO[str]], int]] = {
        "csv": _write_csv,
        "tsv": _write_tsv,
        "json": _write_json,
        "jsonl": _write_jsonl,
    }
    return writers[kind](rows, file)


def _write_csv(rows: Rows, file: IO[str]) -> int:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(rows.schema.names)
    count = 0
    for values in _tuples(rows):
        writer.writerow(["" if value is None else _field(value) for value in values])
        count += 1
    return count


def _write_tsv(rows: Rows, file: IO[str]) -> int:
    file.write("\t".join(map(one_line, rows.schema.names)) + "\n")
    count = 0
    for values in _tuples(rows):
        fields = ("" if value is None else one_line(_field(value)) for value in values)
        file.write("\t".join(fields) + "\n")
        count += 1
    return count


def _write_json(rows: Rows, file: IO[str]) -> int:
    count = 0
    for values in _tuples(rows):
        file.write("[\n " if not count else ",\n ")
        file.write(_json(dict(zip(rows.schema.names, values, strict=True))))
        count += 1
    file.write("\n]\n" if count else "[]\n")
    return count


def _write_jsonl(rows: Rows, file: IO[str]) -> int:
    count = 0
    for values in _tuples(rows):
        file.write(_json(dict(zip(rows.schema.names, values, strict=True))) + "\n")
        count += 1
    return count


def _write_parquet(rows: Rows, path: Path) -> int:
    count = 0
    pending: list[pa.RecordBatch] = []
    waiting = 0
    with parquet_writer(path, rows.schema) as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_batches(pending, rows.schema), row_group_size=_GROUP_ROWS)
            pending.clear()

        for batch in rows.batches:
            pending.append(batch)
            waiting += batch.num_rows
            count += batch.num_rows
            if waiting >= _GROUP_ROWS:
                flush()
                waiting = 0
        flush()
    return count


def _tuples(rows: Rows) -> Iterator[tuple[Any, ...]]:
    for batch in rows.batches:
        columns = [_plain(column) for column in batch.columns]
        yield from zip(*columns, strict=True)


def _plain(column: pa.Array) -> list[Any]:
    """Python values; single precision with no more digits than it has."""
    if pa.types.is_float32(column.type):
        return [None if value is None else float(str(value)) for value in _float32(column)]
    return list(column.to_pylist())


def _float32(column: pa.Array) -> Iterator[Any]:
    values, known = column.to_numpy(zero_copy_only=False), column.is_valid().to_pylist()
    return (value if valid else None for value, valid in zip(values, known, strict=True))


def _field(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return _json(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _json(value: Any) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, default=_json_value)


def _finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


def _json_value(value: Any) -> Any:
    from decimal import Decimal

    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def one_line(text: str) -> str:
    """Text without line ends, tabs, and what would steer a terminal."""
    return "".join(
        " " if character in "\t\n\r\v\f\x85\u2028\u2029" else character if _harmless(character) else "\ufffd"
        for character in text
    )


def _harmless(character: str) -> bool:
    # Controls, and marks that turn the direction of what follows.
    return character.isprintable() or unicodedata.category(character) in ("Zs", "Cf", "Mn", "Mc", "Me", "Co")


def render_table(rows: Rows, limit: int, width: int, terminal: bool = False) -> tuple[str, bool]:
    """A table for people.

    Args:
        rows: only as many are computed as are shown.
        limit: rows shown at most.
        width: columns of the terminal.
        terminal: use bold and lines.

    Returns:
        The text, and whether there are more rows.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown: list[tuple[Any, ...]] = []
    more = False
    for values in _tuples(rows):
        if len(shown) == limit:
            more = True
            break
        shown.append(values)
    table = Table(box=box.SIMPLE_HEAD if terminal else box.MARKDOWN, header_style="bold cyan")
    for place, column in enumerate(rows.schema):
        number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        number = number or pa.types.is_decimal(column.type)
        text = any(isinstance(values[place], str) and len(values[place]) > 24 for values in shown)
        table.add_column(
            Text(one_line(column.name)),
            justify="right" if number else "left",
            overflow="fold",
            min_width=24 if text and len(rows.schema) <= 4 else None,
        )
    if rows.schema.names == ["explain_key", "explain_value"]:
        return "\n".join(str(values[1]).rstrip() for values in shown), more
    if len(rows.schema) * _LEAST_WIDTH > width:
        return _render_records(rows.schema.names, shown), more
    for values in shown:
        table.add_row(*(Text("" if value is None else one_line(_shown(value))) for value in values))
    # A table that is wider than the terminal is less bad than one of columns one letter wide.
    least = sum(min(12, len(name) + 2) for name in rows.schema.names)
    lines = printed(lambda console: console.print(table), max(width, least), terminal)
    return "\n".join(line for line in lines.splitlines() if line), more


def printed(show: Callable[[Console], None], width: int, terminal: bool) -> str:
    """What ``show`` prints as text without blanks at the ends of lines; styled for a terminal only."""
    from rich.console import Console

    buffer = io.StringIO()
    system: Literal["standard"] | None = "standard" if terminal else None
    show(Console(file=buffer, width=width, force_terminal=terminal, highlight=False, color_system=system))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


def _render_records(names: list[str], shown: list[tuple[Any, ...]]) -> str:
    """A line a value: of more columns than fit side by side, nothing can be read in a table."""
    space = max(map(len, names))
    lines = [] if shown else ["no rows; the columns are", *map(one_line, names)]
    for number, values in enumerate(shown, start=1):
        lines.append(f"{'' if number == 1 else chr(10)}row {number}")
        for name, value in zip(names, values, strict=True):
            text = "" if value is None else one_line(_shown(value))
            lines.append(f"  {one_line(name):<{space}}  {text}".rstrip())
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return _field(value)
