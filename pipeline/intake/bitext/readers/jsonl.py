"""Reads JSON Lines, one object per line; columns are names of fields or dotted paths (``translation.cs``)."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.text.lines import LineBlock, Reading, line_blocks
from paraforge.intake.bitext.source import ONLY, REJECT_MALFORMED, Block, NamedColumnSource, reason_codes

_LARGEST_SCORE = float(np.finfo(np.float32).max)
_ARRAY = re.compile(r"\s*\[\s*(\{|$)")


class JsonlSource(NamedColumnSource):
    """JSON Lines; nested fields as ``translation.cs``."""

    format: Literal["jsonl"]

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read a file of JSON objects. An empty line or a null becomes blank text.

        A column ``a.b`` is field b of the object in field a, unless there is a field named ``a.b``.

        Raises InputError if :func:`json_lines` does. A strict reading also raises it if a line is not a JSON
        object with these fields, or has a field twice; if a text is not a string, or a score is not a finite
        number in single precision.
        """
        for block in json_lines(paths[ONLY], reading):
            yield _parse(paths[ONLY], block, self.names, reading.strict)


def json_lines(path: Path, reading: Reading) -> Iterator[LineBlock]:
    """Yield the lines of a file.

    Raises InputError if :func:`paraforge.base.text.lines.line_blocks` does, or if the file is one array.
    """
    for block in line_blocks(path, reading):
        if block.first == 1 and _ARRAY.match(next(filter(str.strip, block.lines[:100].to_pylist()), "")):
            remedy = "Write one object on each line, for example with: jq -c '.[]' FILE > FILE.jsonl"
            raise InputError("a JSON array, not one object on each line", path, remedy=remedy)
        yield block


def _parse(path: Path, block: LineBlock, columns: Mapping[str, str], strict: bool) -> Block:
    values: dict[str, list[Any]] = {name: [] for name in columns}
    malformed = np.zeros(len(block), dtype=bool)
    for row, line in enumerate(block.lines.to_pylist()):
        parsed: Mapping[str, Any] = {}
        try:
            if line and not block.faults[row]:
                parsed = _values(line, columns)
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
            collected.append(parsed.get(name, None if name == "score" else ""))
    scores = values.pop("score", None)
    texts = {name: pa.array(collected, pa.string()) for name, collected in values.items()}
    rows = Block(block.numbers, texts, reason_codes(block))
    rows.refuse(malformed, "malformed")
    if scores is not None:
        rows.scores = pa.array(scores, pa.float32())
    return rows


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the field {twice[:40]!r} occurs twice")
    return members


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
