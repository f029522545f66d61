"""Streams training pairs in blocks from TSV and PPDB files and from the shards of a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.base.shards.schema import FATE_COLUMNS, TEXT_COLUMNS, usable_rows
from paraforge.base.shards.store import ShardView
from paraforge.base.text import ppdb
from paraforge.base.text.lines import finite_number, lists_of_lines

_BLANKS = " \t\r\v\f"
_LOOKED_AT = 100
_PPDB_FIELDS = 4
"""The least number of fields in PPDB's own entries: syntactic label, phrase, paraphrase, features."""
PairFormat = Literal["auto", "ppdb", "tsv"]


@dataclass(frozen=True)
class PairBlock:
    """A block of pairs: two string arrays of equal length (pyarrow), without nulls.

    source: where all of them come from; pairs of one source may be trained on together.
    """

    left: Any
    right: Any
    source: str = ""

    def __len__(self) -> int:
        return len(self.left)

    def filter(self, keep: Any) -> PairBlock:
        """Return the pairs that a boolean array (pyarrow) selects."""
        return PairBlock(self.left.filter(keep), self.right.filter(keep), self.source)

    def slice(self, first: int, pairs: int) -> PairBlock:
        """Return at most ``pairs`` pairs, starting at row ``first``."""
        return PairBlock(self.left.slice(first, pairs), self.right.slice(first, pairs), self.source)


def blocks_of_sources(table: Any, columns: tuple[str, str]) -> Iterator[PairBlock]:
    """Yield the pairs of a table (pyarrow), one block for each value of its column `source`, in their order.

    columns: left and right side.
    """
    if "source" not in table.column_names:
        parts = [("", table)]
    else:
        names = table.column("source")
        parts = [
            (name or "", table.filter(pc.equal(names, name) if name is not None else pc.is_null(names)))
            for name in pc.unique(names).to_pylist()
        ]
    for source, part in parts:
        if part.num_rows:
            left, right = (part.column(name).cast(pa.string()).combine_chunks() for name in columns)
            yield PairBlock(left, right, source)


def read_pair_file(
    path: Path,
    format: PairFormat = "auto",
    columns: tuple[int, int] | None = None,
    limit: int | None = None,
) -> Iterator[PairBlock]:
    """Yield the pairs of a UTF-8 file, plain, gz, bz2, xz or zst; one per line, split only at line feeds.

    format: `tsv`; `ppdb`: fields separated by `|||`; `auto`: by the first line.
    columns: the two fields, from 0; by default 0 and 1, but 1 and 2 of PPDB's own entries, which begin with
        `[NP]` or the like.
    limit: maximum number of pairs.

    A blank line is a pair of two blank sides. A byte order mark is not part of the first field.

    Raises InputError if a line has too few fields or invalid UTF-8, with its number, if columns that were not
    chosen explicitly contain numbers, or if the file is empty or damaged.
    """
    separator: str | None = {"tsv": "\t", "ppdb": ppdb.SEPARATOR}.get(format)
    done = 0
    for first_line, lines in lists_of_lines(path):
        if separator is None:
            separator = ppdb.SEPARATOR if ppdb.SEPARATOR in lines[0] else "\t"
        if columns is None:
            columns = _usual_columns(lines, separator, path)
        if limit is not None:
            lines = lines[: limit - done]
        yield _parse(lines, separator, columns, path, first_line)
        done += len(lines)
        if limit is not None and done >= limit:
            return


def _usual_columns(lines: list[str], separator: str, path: Path) -> tuple[int, int]:
    """Return the default columns of the two sides. Raises InputError if one of them contains scores."""
    columns = (0, 1)
    fields_of_first = ppdb.split_fields(lines[0])
    if separator == ppdb.SEPARATOR and (
        ppdb.is_entry(fields_of_first) or len(fields_of_first) >= _PPDB_FIELDS
    ):
        columns = (1, 2)
    rows = [line.split(separator) for line in lines[:_LOOKED_AT] if line.strip(_BLANKS)]
    for column in columns:
        fields = [row[column] for row in rows if len(row) > column]
        if len(fields) >= 2 and all(finite_number(field) is not None for field in fields):
            raise InputError(
                f"column {column} (counted from 0) has numbers, not sentences",
                path,
                1,
                "Pass the columns of the sentences with --columns, e.g. 1,2 ('columns' in params.yaml).",
            )
    return columns


def read_corpus_pairs(*directories: Path) -> Iterator[PairBlock]:
    """Yield reference and translation of every pair of a corpus that is neither rejected nor failed, shard by
    shard.

    directories: row-aligned shard directories; the columns `rejected` and `failed` are used if they exist.

    Raises InputError if there are no such shards, or they have no columns reference and translation.
    """
    view = ShardView(*directories)
    others = [name for name in ("source", *FATE_COLUMNS) if name in view.column_names]
    for table in view.tables([*TEXT_COLUMNS, *others]):
        yield from blocks_of_sources(table.filter(usable_rows(table)), TEXT_COLUMNS)


def _parse(
    lines: list[str], separator: str, columns: tuple[int, int], path: Path, first_line: int
) -> PairBlock:
    left_column, right_column = columns
    needed = max(columns)
    left: list[str] = []
    right: list[str] = []
    for number, line in enumerate(lines, start=first_line):
        fields = line.rstrip("\r").split(separator)
        if len(fields) == 1 and not fields[0].strip(_BLANKS):
            left.append("")
            right.append("")
            continue
        if len(fields) <= needed:
            raise InputError(
                f"{counted(len(fields), 'field')}, but column {needed} (counted from 0) is needed",
                path,
                number,
                f"Fields are separated by {separator!r}; name other columns (columns, or --columns).",
            )
        left.append(fields[left_column].strip())
        right.append(fields[right_column].strip())
    return PairBlock(pa.array(left, pa.string()), pa.array(right, pa.string()), path.name)
