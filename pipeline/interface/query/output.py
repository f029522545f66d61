"""Rows written as table, CSV, TSV, JSON, JSON lines or Parquet, batch by batch."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path, remove, text_output, unfinished_paths
from paraforge.base.shards.store import parquet_writer
from paraforge.base.shards.work import temporary_beside
from paraforge.interface.query.database import ROWS_AT_ONCE, Rows

if TYPE_CHECKING:
    from rich.console import Console


TABLE, PARQUET = "table", "parquet"
SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".parquet": PARQUET}
FORMATS = (TABLE, *SUFFIXES.values())
_AS_TEXT = "CAST it to VARCHAR in the query."
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a text begins with that a spreadsheet runs as a formula, or may after it has removed a blank."""
# Of a table's column; with less, values are broken into unreadable pieces.
_LEAST_WIDTH = 12


def chosen_format(name: str | None, output: Path | None, otherwise: str = TABLE) -> str:
    """The format named, or that of the output file's ending. Raises InputError: no such format, one that
    cannot go to the terminal, or an ending that says nothing."""
    if name is not None:
        if name not in FORMATS:
            raise InputError(f"no format '{name}'", remedy=f"There are {', '.join(FORMATS)}.")
        if name == PARQUET and output is None:
            raise InputError("Parquet cannot be shown", remedy="Add --output FILE.")
        return name
    if output is None:
        return otherwise
    name = output.name.lower().removesuffix(".gz")
    kind = SUFFIXES.get(Path(name).suffix)
    if kind is None or (kind == PARQUET and name != output.name.lower()):
        raise InputError(
            f"the ending '{output.suffix}' does not say which format",
            output,
            remedy=f"Use {', '.join(SUFFIXES)} (a text with .gz, too), or add --format.",
        )
    return kind


def check_spreadsheet(kind: str, wanted: bool, *, kinds: Sequence[str] = ("csv", "tsv")) -> None:
    """Raise InputError where --safe-for-spreadsheets is given for another format than these."""
    if wanted and kind not in kinds:
        raise InputError(
            "--safe-for-spreadsheets has no meaning here", remedy=f"It is for {', '.join(kinds)}."
        )


def safe_text(text: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would take it for a formula. Carriage returns
    become line ends: they end a row, and Python's CSV does not quote them."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_rows(rows: Rows, path: Path | None, kind: str, spreadsheet: bool = False) -> int:
    """Write all rows to a file (a text as `.gz`: compressed), whole or not at all, or as text to standard
    output; gives their number. spreadsheet: see :func:`write_text`."""
    if path is None:
        return write_text(rows, sys.stdout, kind, spreadsheet)
    if kind == PARQUET:
        with atomic_path(path) as temporary:
            return _write_parquet(rows, temporary)
    with text_output(path) as file:
        return write_text(rows, file, kind, spreadsheet)


@contextmanager
def parquet_as(kind: str, path: Path) -> Iterator[Path]:
    """Give a path for a Parquet file; after the block its rows are in ``path`` in the format ``kind``."""
    if kind == PARQUET:
        yield path
        return
    place = temporary_beside(path)
    unfinished_paths.add(place)
    try:
        parquet = place / "rows.parquet"
        yield parquet
        with pq.ParquetFile(parquet) as file:
            batches = file.iter_batches(ROWS_AT_ONCE, use_threads=False)
            write_rows(Rows(file.schema_arrow, batches), path, kind)
    finally:
        remove(place)
        unfinished_paths.discard(place)


def write_text(rows: Rows, file: IO[str], kind: str, spreadsheet: bool = False) -> int:
    """Write all rows as ``csv``, ``tsv``, ``json`` (one array) or ``jsonl``; gives their number.

    A missing value is an empty field, or null. Within a field of TSV, tabs and line ends become blanks.
    NaN is null in JSON, and a number of single precision has no more digits than it needs: DuckDB's COPY
    writes NaN as it is, and 0.7 as 0.699999988079071.

    spreadsheet: texts of CSV and TSV that a spreadsheet would run as a formula get an apostrophe before them.

    Raises InputError: a text has the character NUL, of which Python 3.10 makes no CSV.
    """
    names = rows.schema.names
    count = 0
    if kind in ("csv", "tsv"):
        write = csv.writer(file, lineterminator="\n").writerow if kind == "csv" else _tsv_writer(file)
        text = safe_text if spreadsheet else str
        write([text(name) for name in names])
        for values in _tuples(rows):
            try:
                write([text(value) if isinstance(value, str) else _field(value) for value in values])
            except csv.Error as error:
                raise InputError(
                    f"row {count + 1} has the character NUL: {error}",
                    remedy="Write JSON lines, or use Python 3.11 or later.",
                ) from error
            count += 1
        return count
    before, between, after = ("[\n ", ",\n ", "\n]\n") if kind == "json" else ("", "\n", "\n")
    for count, values in enumerate(_tuples(rows), start=1):
        file.write((between if count > 1 else before) + _json(dict(zip(names, values, strict=True))))
    file.write(after if count else "[]\n" if kind == "json" else "")
    return count


def _tsv_writer(file: IO[str]) -> Callable[[Iterable[str]], object]:
    return lambda fields: file.write("\t".join(map(one_line, fields)) + "\n")


def _write_parquet(rows: Rows, path: Path) -> int:
    count = 0
    try:
        with parquet_writer(path, rows.schema) as writer:
            for batch in rows.batches:
                writer.write_batch(batch)
                count += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise InputError(f"Parquet has no such type: {error}", remedy=_AS_TEXT) from error
    return count


def _tuples(rows: Rows) -> Iterator[tuple[Any, ...]]:
    for batch in rows.batches:
        try:
            columns = [_plain(column) for column in batch.columns]
        except OverflowError as error:  # DuckDB has dates that Python lacks
            raise InputError(f"a value cannot be shown: {error}", remedy=_AS_TEXT) from error
        yield from zip(*columns, strict=True)


def _plain(column: pa.Array) -> list[Any]:
    """Python values; single precision with no more digits than it has."""
    if not pa.types.is_float32(column.type):
        return list(column.to_pylist())
    values, known = column.to_numpy(zero_copy_only=False), column.is_valid().to_pylist()
    return [float(str(value)) if valid else None for value, valid in zip(values, known, strict=True)]


def fixed(number: float, digits: int) -> str:
    """A number with so many decimals; zero has no sign, whatever was rounded to it."""
    return f"{round(number, digits) + 0.0:.{digits}f}"


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    return _json(value) if isinstance(value, dict | list) else str(value)


def _json(value: Any) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, default=_json_value)


def _finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def _json_value(value: Any) -> Any:
    from decimal import Decimal

    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


def one_line(text: str) -> str:
    """Text without line ends, tabs, and what would steer a terminal."""
    return "".join(
        " " if character in "\t\n\r\v\f\x85\u2028\u2029" else character if _harmless(character) else "\ufffd"
        for character in text
    )


def _harmless(character: str) -> bool:
    # Not "printable": this Python's tables may be older than the newest emoji.
    return unicodedata.category(character) not in ("Cc", "Cs")


def render_table(rows: Rows, limit: int, width: int, terminal: bool = False) -> tuple[str, bool]:
    """A table for people.

    rows: only as many are computed as are shown. limit: rows shown at most. width: columns of the terminal.
    terminal: use bold and lines.

    Returns the text, and whether there are more rows.
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


Pieces = list[tuple[str, bool]]
"""A text cut into pieces, each with whether it is a word that the other side lacks."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def marked_words(first: str, second: str) -> tuple[Pieces, Pieces]:
    """Cut both texts into pieces; words are compared without case and counted: a second 'the' may differ."""
    counts = [Counter(word.group().lower() for word in _WORD.finditer(text)) for text in (first, second)]
    return _marked(first, counts[1]), _marked(second, counts[0])


def _marked(text: str, others: Counter[str]) -> Pieces:
    left = others.copy()
    pieces: Pieces = []
    position = 0
    for word in _WORD.finditer(text):
        if word.start() > position:
            pieces.append((text[position : word.start()], False))
        key = word.group().lower()
        pieces.append((word.group(), left[key] <= 0))
        left[key] -= 1
        position = word.end()
    if position < len(text):
        pieces.append((text[position:], False))
    return pieces
