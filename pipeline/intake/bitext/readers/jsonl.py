"""Reads JSON: one object per line, or an array of objects; texts by field name or dotted path
(``translation.cs``)."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.text.compression import read_ahead
from paraforge.base.text.lines import OVERLONG_LINE, LineBlock, Reading, line_blocks
from paraforge.intake.bitext.block import REJECT_MALFORMED, Block, reason_codes, text_array, text_of
from paraforge.intake.bitext.source import ONLY, NamedColumnSource, Where

_LARGEST_SCORE = float(np.finfo(np.float32).max)
_READ_BYTES = 1 << 18
_BLOCK_ITEMS = 10_000
_SPACE = re.compile(r"\s*")
_ARRAY = re.compile(r"\s*\[\s*(\{|$)")


class JsonlSource(NamedColumnSource):
    """One object per line, or one array of objects; nested fields as ``translation.cs``."""

    format: Literal["jsonl"]

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read a file of JSON objects. An empty line and a null are blank text.

        A column ``a.b`` is field b of the object in field a, unless there is a field named ``a.b``. In an
        array, the line of a row is the number of its object.

        Raises InputError: see :func:`paraforge.base.text.lines.line_blocks`; in a strict reading if a line
        is not a JSON object with these fields or has a field twice, a text is not a string, or a score is not
        a finite number in single precision; if an array is damaged.
        """
        path = paths[ONLY]
        for block in json_blocks(path, reading):
            yield _parse(path, block, self.names, reading.strict, self.where)


def json_blocks(path: Path, reading: Reading) -> Iterator[LineBlock]:
    """Yield the objects of a file as lines of JSON: the file's lines or the items of its array.

    Raises InputError: see :meth:`JsonlSource.read`.
    """
    blocks = line_blocks(path, reading)
    first = next(blocks)
    begin = next((line for line in first.lines[:100].to_pylist() if line.strip()), "")
    if _ARRAY.match(begin):
        yield from _items(path, reading)
    else:
        yield from chain([first], blocks)


def _items(path: Path, reading: Reading) -> Iterator[LineBlock]:
    """Yield the items of an array, each as a line, in bounded memory."""
    texts = _decoded(path)
    text, place = next(texts).removeprefix("\ufeff").lstrip(), 1
    items: list[str] = []
    done, needs_comma = 0, False
    while True:
        place = _SPACE.match(text, place).end()  # type: ignore[union-attr]  # the pattern matches an empty string, so never None
        following = text[place : place + 1]
        if following == "]":
            break
        try:
            if not following:
                raise ValueError("the file is truncated")
            if needs_comma:
                if following != ",":
                    raise InputError(
                        "damaged JSON array: no comma after this object", path, done + len(items)
                    )
                place, needs_comma = place + 1, False
                continue
            _, end = _SCANNER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            more = next(texts, None)
            if more is None or len(text) - place > reading.max_line_bytes + _READ_BYTES:
                problem = f"damaged or truncated JSON array: {error}"
                raise InputError(problem, path, done + len(items) + 1) from error
            text, place = text[place:] + more, 0
            continue
        items.append(text[place:end])
        place, needs_comma = end, True
        if len(items) == _BLOCK_ITEMS:
            yield _as_lines(items, done + 1, reading)
            done += len(items)
            items = []
    if items:
        yield _as_lines(items, done + 1, reading)


def _decoded(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    for data in read_ahead(path, _READ_BYTES):
        try:
            yield decoder.decode(data)
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8: {error}", path) from error


def _as_lines(items: list[str], first: int, reading: Reading) -> LineBlock:
    lines, _ = text_array(items)
    faults = np.where(pc.binary_length(lines).to_numpy() > reading.max_line_bytes, OVERLONG_LINE, 0)
    return LineBlock(first, lines, faults.astype(np.uint8))


def _parse(
    path: Path, block: LineBlock, columns: Mapping[str, str], strict: bool, where: Where | None
) -> Block:
    texts: dict[str, list[str]] = {name: [] for name in columns if name != "score"}
    scores: list[float | None] = []
    tested: list[str] = []
    malformed = np.zeros(len(block), dtype=bool)
    refused = block.faults != 0
    for row, line in enumerate(block.lines.to_pylist()):
        try:
            if refused[row] or not line:
                values: dict[str, Any] = dict.fromkeys(columns)
                value = None
            else:
                item = _DECODER.decode(line)
                if not isinstance(item, dict):
                    raise ValueError("not an object")
                values = {name: _field(item, field) for name, field in columns.items()}
                value = _field(item, str(where.column)) if where is not None else None
                if isinstance(value, (dict, list)):
                    raise TypeError(
                        f"{where and where.column!r} is {type(value).__name__}, not a single value"
                    )
            _append(texts, scores, values)
        # A line of ten thousand brackets raises RecursionError.
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            if strict:
                told = f"no field {error}" if isinstance(error, LookupError) else str(error)
                if isinstance(error, RecursionError):
                    told = "nested too deeply"  # Python's wording differs between versions
                raise InputError(
                    f"not a JSON object as expected: {told}", path, block.first + row, REJECT_MALFORMED
                ) from error
            malformed[row] = True
            _append(texts, scores, dict.fromkeys(columns))
            value = None
        tested.append(text_of(value))
    arrays = {name: text_array(values) for name, values in texts.items()}
    for array_name, (_, broken) in arrays.items():
        if strict and broken.any():
            line_number = block.first + int(np.flatnonzero(broken)[0])
            raise InputError(f"{array_name} has a lone surrogate", path, line_number, REJECT_MALFORMED)
        malformed |= broken
    rows = Block(block.numbers, {name: array for name, (array, _) in arrays.items()}, reason_codes(block))
    rows.refuse(malformed, "malformed")
    if where is not None:
        rows.refuse(~where.holds(text_array(tested)[0]), "not_selected")
    if "score" in columns:
        rows.scores = pa.array(scores, pa.float32())
    return rows


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the field {twice[:40]!r} occurs twice")
    return found


_SCANNER = json.JSONDecoder()
# JSON readers take the last of equal names, so it is unclear which text was meant.
_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _field(item: dict[str, Any], name: str) -> Any:
    if name in item:
        return item[name]
    value: Any = item
    for part in name.split("."):
        if value is None:
            return None  # the parent object is null, and so is the field
        if not isinstance(value, dict) or part not in value:
            raise LookupError(repr(name))
        value = value[part]
    return value


def _append(texts: dict[str, list[str]], scores: list[float | None], values: Mapping[str, Any]) -> None:
    """Add a whole row, or nothing if a value has the wrong type."""
    for name, value in values.items():
        if name == "score":
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
                raise TypeError(f"the score is {value!r}, not a number")
            if value is not None and not abs(value) <= _LARGEST_SCORE:
                raise TypeError("the score is not a finite number in single precision")
        elif value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is {type(value).__name__}, not a string")
    for name, collected in texts.items():
        collected.append(values[name] or "")
    if "score" in values:
        scores.append(None if values["score"] is None else float(values["score"]))
