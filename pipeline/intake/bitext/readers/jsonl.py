"""Reads JSON files: one object per line, or an array of objects; columns are field names or dotted paths
such as ``translation.cs``."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.text.compression import read_ahead
from paraforge.base.text.lines import INVALID_UTF8, OVERLONG_LINE, LineBlock, Reading, line_blocks
from paraforge.intake.bitext.source import ONLY, REJECT_MALFORMED, Block, NamedColumnSource, reason_codes

_LARGEST_SCORE = float(np.finfo(np.float32).max)
_READ_BYTES = 1 << 18
_BLOCK_ITEMS = 10_000
_ARRAY = re.compile(r"\s*\[\s*(\{|$)")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_BEFORE_ITEM = re.compile(r"\s*([\[,\]])\s*")


class JsonlSource(NamedColumnSource):
    """JSON files with one object per line, or one array of objects; nested fields as ``translation.cs``."""

    format: Literal["jsonl"]

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read a file of JSON objects. An empty line or a null becomes blank text.

        A column ``a.b`` is field b of the object in field a, unless there is a field named ``a.b``. In an
        array, the line of a row is the number of its object.

        Raises InputError if :func:`paraforge.base.text.lines.line_blocks` does, or if an array is damaged. A
        strict reading also raises it if a line is not a JSON object with these fields, or has a field
        twice; if a text is not a string, or a score is not a finite number in single precision.
        """
        for block in json_blocks(paths[ONLY], reading):
            yield _parse(paths[ONLY], block, self.names, reading.strict)


def json_blocks(path: Path, reading: Reading) -> Iterator[LineBlock]:
    """Yield the objects of a file as lines of JSON: the file's lines, or the items of its array.

    Raises InputError if a line is not valid text (strict reading), or if an array is damaged.
    """
    blocks, seen, begin = line_blocks(path, reading), list[LineBlock](), ""
    while not begin and (block := next(blocks, None)):
        seen.append(block)
        begin = next(filter(str.strip, block.lines[:100].to_pylist()), "")
    if not _ARRAY.match(begin):
        yield from chain(seen, blocks)
        return
    items, done = _items(path, reading.max_line_bytes), 0
    while some := list(islice(items, _BLOCK_ITEMS)):
        faults = np.array([INVALID_UTF8 if _NOT_UTF8.search(item) else 0 for item in some])
        if reading.strict and faults.any():
            raise InputError("not UTF-8", path, done + int(faults.argmax()) + 1, REJECT_MALFORMED)
        lines = pa.array([_NOT_UTF8.sub("\ufffd", item) for item in some], pa.string())
        faults[pc.binary_length(lines).to_numpy() > reading.max_line_bytes] = OVERLONG_LINE
        yield LineBlock(done + 1, lines, faults.astype(np.uint8))
        done += len(some)


def _items(path: Path, longest: int) -> Iterator[str]:
    """Yield the items of an array in bounded memory; bytes that are not UTF-8 become surrogates."""
    data = codecs.iterdecode(read_ahead(path, _READ_BYTES), "utf-8-sig", "surrogateescape")
    text, place, number = "", 0, 0
    while True:
        try:
            before = _BEFORE_ITEM.match(text, place)
            if before is None:
                raise ValueError("no comma or bracket after an object")
            if before[1] == "]":
                break
            _, end = _SCANNER.raw_decode(text, before.end())
            yield text[before.end() : end]
            place, number = end, number + 1
        except (ValueError, RecursionError) as error:  # the item may be incomplete: read more
            is_long = len(text) - place > longest + _READ_BYTES
            more = "" if is_long else next(data, "")
            if not more:
                problem = f"an object of more than {longest:,} bytes, or a " if is_long else ""
                problem += f"damaged or truncated JSON array: {error}"
                remedy = "Correct this object of the array, or write one object on each line."
                raise InputError(problem, path, number + 1, remedy) from error
            text, place = text[place:] + more, 0
    if text[before.end() :] or any(map(str.strip, data)):
        raise InputError("damaged JSON array: something follows its end", path, number)


def _parse(path: Path, block: LineBlock, columns: Mapping[str, str], strict: bool) -> Block:
    values: dict[str, list[Any]] = {name: [] for name in columns}
    malformed = np.zeros(len(block), dtype=bool)
    for row, line in enumerate(block.lines.to_pylist()):
        found: Mapping[str, Any] = {}
        try:
            if line and not block.faults[row]:
                found = _values(line, columns)
        # A line of ten thousand brackets raises RecursionError.
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            if strict:
                told = f"no field {error}" if isinstance(error, LookupError) else str(error)
                if isinstance(error, RecursionError):
                    told = "nested too deeply"  # Python's wording differs between versions
                problem = f"not a JSON object as expected: {told}"
                raise InputError(problem, path, block.first + row, REJECT_MALFORMED) from error
            malformed[row] = True
        for name, collected in values.items():
            collected.append(found.get(name, None if name == "score" else ""))
    scores = values.pop("score", None)
    texts = {name: pa.array(collected, pa.string()) for name, collected in values.items()}
    rows = Block(block.numbers, texts, reason_codes(block))
    rows.refuse(malformed, "malformed")
    if scores is not None:
        rows.scores = pa.array(scores, pa.float32())
    return rows


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the field {twice[:40]!r} occurs twice")
    return found


_SCANNER = json.JSONDecoder()
# If a name occurs twice, it is unclear which text was meant; Python would silently use the last.
_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _values(line: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of an object that are not null.

    Raises ValueError, TypeError or LookupError if a field is missing or has the wrong type.
    """
    item = _DECODER.decode(line)
    if not isinstance(item, dict):
        raise ValueError("not an object")
    values = {name: _field(item, field) for name, field in columns.items()}
    values = {name: value for name, value in values.items() if value is not None}
    for name, value in values.items():
        if name != "score":
            if not isinstance(value, str):
                raise TypeError(f"{name} is {type(value).__name__}, not a string")
            value.encode()  # raises for a lone surrogate
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"the score is {value!r}, not a number")
        elif not abs(value) <= _LARGEST_SCORE:
            raise TypeError("the score is not a finite number in single precision")
        else:
            values[name] = float(value)
    return values


def _field(item: dict[str, Any], name: str) -> Any:
    if name in item:
        return item[name]
    value: Any = item
    for part in name.split("."):
        if value is None:
            return None  # a field of a null object is null
        if not isinstance(value, dict) or part not in value:
            raise LookupError(repr(name))
        value = value[part]
    return value
