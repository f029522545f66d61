"""Reading the sentences of test files, so that a corpus can be kept free of them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from paraforge.errors import InputError

TestFormat = Literal["plain", "tsv", "sts"]
# An STS file's sentences are the columns behind the gold score.
_STS_COLUMNS: tuple[int | str, ...] = (1, 2)


def read_test_sentences(
    path: Path, format: TestFormat = "plain", columns: Sequence[int | str] = (), header: bool = False
) -> Iterator[str]:
    """Yield the sentences of a test file, plain or gz.

    Args:
        path: UTF-8 text, lines split on ``\\n`` only.
        format: ``plain`` has a sentence a line; ``tsv`` has tab-separated columns without quoting; ``sts`` is
            a TSV of gold score, sentence, sentence.
        columns: columns of a TSV, numbers from 0 or names of its header. For ``sts`` another choice than
            1 and 2; not for ``plain``.
        header: whether the first line names the columns. Implied by a column given by name.

    Raises:
        InputError: the file is missing, not UTF-8, truncated, or a line lacks a column; with file and line.
    """
    wanted = list(columns) or (list(_STS_COLUMNS) if format == "sts" else [])
    if format == "plain":
        for _, text in _lines(path):
            yield text
        return
    if not wanted:
        raise InputError("a TSV needs the columns that hold sentences", path, remedy="Set columns.")
    by_name = any(isinstance(column, str) for column in wanted)
    places = [column for column in wanted if isinstance(column, int)]
    for number, text in _lines(path):
        fields = text.split("\t")
        if number == 1 and (header or by_name):
            places = [_place(column, fields, path) for column in wanted]
            continue
        if not text:
            continue
        for place in places:
            if place >= len(fields):
                raise InputError(f"{len(fields)} columns, no column {place} (counted from 0)", path, number)
            yield fields[place]


def _place(column: int | str, header: list[str], path: Path) -> int:
    if isinstance(column, int):
        return column
    if column in header:
        return header.index(column)
    raise InputError(f"no column '{column}' in the header: {', '.join(header)}", path, 1)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.removesuffix("\n").removesuffix("\r")
    except FileNotFoundError as error:
        raise InputError("no such test file", path) from error
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error.reason}", path, number) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"damaged or truncated: {error}", path, number + 1) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path) from error
    if not number:
        raise InputError("the test file is empty", path)
