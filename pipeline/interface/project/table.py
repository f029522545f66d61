"""Finds the columns of a table that have sentences, and their languages, from its first 1,000 rows."""

import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.shards.schema import holds_bytes, holds_text
from paraforge.base.text.language_codes import CODES, THREE_LETTERS
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.languages import LANGUAGE, NO_WORD, identified, is_header, language_code
from paraforge.intake.bitext.readers.jsonl import json_blocks
from paraforge.intake.bitext.readers.parquet import parquet_tables
from paraforge.intake.bitext.readers.tmx import tmx_texts
from paraforge.intake.bitext.readers.tsv import even_rows, separator_of

Place = int | str
"""Number or name of a column, as written in a source's parameters."""

SAMPLE_ROWS = 1_000
_FORMATS = {
    ".tsv": "tsv", ".tab": "tsv", ".txt": "tsv", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".tmx": "tmx",
}  # fmt: skip
NO_LANGUAGES = {"txt", "tok", "src", "ref", "trg", "tgt", "hyp", "raw", "bpe", "tc", "lc", "mt"}
"""File endings that look like language codes but rarely are. Maltese (`mt`) is identified from its text."""
_NUMBER = re.compile(r"[-+]?\d[\d.,:/%eE+-]*|")
_MOST_WORDS = 3  # in the name of a column
# In a column of sentences, more than these shares of the texts have several words (or are not in ASCII),
# and are distinct.
_WORDY, _DISTINCT = 0.2, 0.05


def format_of(path: Path) -> str | None:
    """Return the format that a file's name states, or None."""
    return next((_FORMATS[one] for one in map(str.lower, path.suffixes[::-1]) if one in _FORMATS), None)


def text_columns(path: Path, form: str | None) -> tuple[dict[Place, str | None], dict[str, Any]]:
    """Find the columns of sentences and their languages.

    Returns the language of each such column, None if unclear, and the other settings of a source for this
    file: format, separator, header. A language in a column's name or in a TMX file is believed; others are
    identified from the texts.

    Raises:
        InputError: the file is missing, empty, damaged, or of no format that has columns.
        MissingPackageError: py3langid, which tells languages, is not installed.
    """
    if form is None:
        raise InputError(f"a table must end in {', '.join(_FORMATS)}, optionally compressed", path)
    if importlib.util.find_spec("py3langid") is None:
        raise MissingPackageError("py3langid", "pipeline")
    reading: dict[str, Any] = {"format": form}
    columns: dict[Place, list[str]] = {}
    if form == "tmx":
        columns.update(tmx_texts(path, SAMPLE_ROWS))
    elif form == "parquet":
        columns = _texts(next(parquet_tables(path, SAMPLE_ROWS)))
    elif form == "jsonl":
        columns = _objects(path)
    else:
        columns = _cells(path, form, reading)
    columns = {place: texts for place, texts in columns.items() if _has_sentences(texts)}
    codes = {place: _code(place) for place in columns}
    known = {
        place
        for place, code in codes.items()
        if code and (code in CODES or language_code(code) in THREE_LETTERS)
    }
    if known and all(codes.values()):
        known = set(codes)  # if one name is a known code, the others are codes too
    return {
        place: language_code(str(codes[place])) if place in known else identified(texts)
        for place, texts in columns.items()
    }, reading


def _has_sentences(texts: Sequence[str]) -> bool:
    """Return whether texts are sentences: not numbers, keys, addresses, labels, or names without spaces."""
    words = [NO_WORD.sub(" ", text).split() for text in texts]
    wordy = sum(len(one) > 1 or not "".join(one).isascii() for one in words)
    return wordy > _WORDY * len(texts) and len(set(texts)) > _DISTINCT * len(texts)


def _code(place: Place) -> str | None:
    """Return the last part of a column's name if it has the form of a language code, otherwise None."""
    code = LANGUAGE.fullmatch(str(place).rsplit(".", 1)[-1])
    return code[0] if code is not None and code[0] not in NO_LANGUAGES else None


def _texts(table: pa.Table) -> dict[Place, list[str]]:
    """Return the columns of text. A column of bytes counts as text if all its values are UTF-8."""
    found: dict[Place, list[str]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if holds_bytes(column.type):
            with suppress(pa.ArrowInvalid):
                column = column.cast(pa.string())
        if holds_text(column.type):
            found[name] = [text or "" for text in column.to_pylist()]
    return found


def _objects(path: Path) -> dict[Place, list[str]]:
    """Return the strings of the first objects by dotted name; "" for each object that lacks the name."""
    block = next(json_blocks(path, Reading(strict=False)))
    lines = block.lines.slice(0, SAMPLE_ROWS).to_pylist()
    found: dict[Place, list[str]] = {}
    for number, line in enumerate(lines, block.first):
        try:
            texts = dict(_strings(json.loads(line) if line else {}))
        except (ValueError, RecursionError, AttributeError) as error:
            remedy = "Write one object on each line, or one array of objects."
            raise InputError("not a JSON object", path, number, remedy) from error
        for name, text in texts.items():
            found.setdefault(name, []).append(text)
    return {name: [*texts, *[""] * (len(lines) - len(texts))] for name, texts in found.items()}


def _strings(item: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in item.items():
        if isinstance(value, dict):
            yield from _strings(value, f"{prefix}{name}.")
        elif isinstance(value, str):
            yield f"{prefix}{name}", value


def _cells(path: Path, form: str, reading: dict[str, Any]) -> dict[Place, list[str]]:
    """Return the columns of a CSV or TSV file by name if it has a header, otherwise by number.

    Writes the settings ``separator`` and ``header`` to ``reading``.
    """
    separator = separator_of(path) if form == "csv" else None
    if separator is not None:
        reading["separator"] = separator
    rows = even_rows(path, separator)
    reading["header"] = bool(rows) and _is_header(rows, form)
    names = rows[0] if reading["header"] else range(len(rows[0]) if rows else 0)
    return dict(zip(names, map(list, zip(*rows[reading["header"] :], strict=True)), strict=False))


def _is_header(rows: list[list[str]], form: str) -> bool:
    """Return whether the first row is a header: it has known names, or a word above a column of numbers.

    In a CSV file, which usually has a header, short texts suffice. The first name may be blank, as pandas
    writes its index.
    """
    first, *others = rows
    names = first[1:] if first[0] == "" else first
    if len(set(first)) < len(first) or not all(0 < len(cell.split()) <= _MOST_WORDS for cell in names):
        return False
    numbers = [all(map(_NUMBER.fullmatch, texts)) for texts in zip(*others, strict=True)]
    above = (cell.isalpha() for cell, numeric in zip(first, numbers, strict=bool(others)) if numeric)
    return form == "csv" or is_header(names) or any(above)
