"""Reads the sentences of test files, so that they can be kept out of a corpus."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from paraforge.base.errors import InputError
from paraforge.base.text.lines import numbered_lines

TestFormat = Literal["plain", "tsv", "sts"]
# In an STS file, the sentences are the columns after the gold score.
_STS_COLUMNS: tuple[int | str, ...] = (1, 2)


def read_test_sentences(
    path: Path, format: TestFormat = "plain", columns: Sequence[int | str] = (), header: bool = False
) -> Iterator[str]:
    """Yield the sentences of a test file, plain or compressed.

    Args:
        path: UTF-8 text, lines split on ``\\n`` only.
        format: ``plain`` has one sentence per line; ``tsv`` has tab-separated columns without quoting;
            ``sts`` is a TSV of gold score, sentence, sentence.
        columns: columns of a TSV, as numbers from 0 or names in its header. For ``sts`` the default is 1 and
            2; not allowed for ``plain``.
        header: whether the first line names the columns. Implied by a column given by name.

    Raises:
        InputError: the file is missing, empty, not UTF-8, truncated, or a line lacks a column or is too long,
            with file and line.
    """
    wanted = list(columns) or (list(_STS_COLUMNS) if format == "sts" else [])
    if not path.exists():
        raise InputError("no such test file", path)
    if format == "plain":
        for _, text in numbered_lines(path, blank=True):
            yield text
        return
    if not wanted:
        raise InputError("name the columns of the TSV that contain sentences", path, remedy="Set columns.")
    by_name = any(isinstance(column, str) for column in wanted)
    places = [column for column in wanted if isinstance(column, int)]
    for number, text in numbered_lines(path, blank=True):
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
