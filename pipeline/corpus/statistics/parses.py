"""The top two levels of the references' constituency parses, from files of bracketed trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.parsing.brackets import top_two_levels
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.statistics.parameters import ParseFile, located

Row = tuple[str, int]
"""Source and line of a pair."""


def read_parses(files: Sequence[ParseFile], wanted: Mapping[str, set[int]]) -> dict[Row, str]:
    """The top two levels of the parses of the rows wanted.

    files: bracketed trees, one per line; parallel to a source's lines (a blank line has no tree), or keyed:
        source, line number and tree, separated by tabs.
    wanted: line numbers, from 1, of each source.

    Raises InputError: a file is missing; a wanted line has no well-formed tree, or no key.
    """
    parses: dict[Row, str] = {}
    for file in files:
        path = located(file.path)
        for number, source, line, tree in _rows(file, path):
            if line in wanted.get(source, ()):
                try:
                    parses[source, line] = top_two_levels(tree)
                except ValueError as error:
                    raise InputError(f"no bracketed tree: {error}", path, number) from error
    return parses


def _rows(file: ParseFile, path: Path) -> Iterator[tuple[int, str, int, str]]:
    for number, text in numbered_lines(path):
        if file.source is not None:
            yield number, file.source, number, text
            continue
        fields = text.split("\t", 2)
        if len(fields) != 3 or not fields[1].isdecimal():
            raise InputError("source, line number and tree are expected, separated by tabs", path, number)
        yield number, fields[0], int(fields[1]), fields[2]
