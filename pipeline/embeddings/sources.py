"""Where training pairs come from: TSV and PPDB files, and the shards of a corpus; streamed, block by
block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.bitext.compression import read_ahead
from pipeline.errors import InputError
from pipeline.shards.store import ShardView

_BLOCK_BYTES = 1 << 22
_PPDB = b"|||"
PairFormat = Literal["auto", "ppdb", "tsv"]


@dataclass(frozen=True)
class PairBlock:
    """Some pairs: two string arrays of equal length (pyarrow), without nulls."""

    left: Any
    right: Any

    def __len__(self) -> int:
        return len(self.left)


def read_pair_file(
    path: Path,
    format: PairFormat = "auto",
    columns: tuple[int, int] | None = None,
    limit: int | None = None,
) -> Iterator[PairBlock]:
    """The pairs of a UTF-8 file, plain, gz, bz2, xz or zst, one pair a line, split on line feeds alone.

    format: `tsv`; `ppdb`: fields parted by `|||`; `auto`: by the first line.
    columns: the two fields, from 0; by default 0 and 1 of a TSV, 1 and 2 of PPDB (phrase and paraphrase).
    limit: so many pairs at most.

    Raises:
        InputError: a line with too few fields or invalid UTF-8, with its number; an empty or damaged file.
    """
    separator: bytes | None = {"tsv": b"\t", "ppdb": _PPDB}.get(format)
    done = 0
    for first_line, lines in _blocks_of_lines(path):
        if separator is None:
            separator = _PPDB if _PPDB in lines[0] else b"\t"
        if columns is None:
            columns = (1, 2) if separator == _PPDB else (0, 1)
        if limit is not None:
            lines = lines[: limit - done]
        yield _parse(lines, separator, columns, path, first_line)
        done += len(lines)
        if limit is not None and done >= limit:
            return


def read_corpus_pairs(*directories: Path) -> Iterator[PairBlock]:
    """Reference and translation of every pair of a corpus that is neither rejected nor failed, shard by
    shard.

    directories: row-aligned shard directories; the columns `rejected` and `failed` are looked at where
        they exist.

    Raises:
        InputError: no such shards, or no columns reference and translation.
    """
    view = ShardView(*directories)
    fates = [name for name in ("rejected", "failed") if name in view.column_names]
    for table in view.tables(["reference", "translation", *fates]):
        keep = pc.and_(pc.is_valid(table.column("reference")), pc.is_valid(table.column("translation")))
        for name in fates:
            keep = pc.and_(keep, pc.is_null(table.column(name)))
        kept = table.filter(keep)
        if kept.num_rows:
            yield PairBlock(
                kept.column("reference").combine_chunks(), kept.column("translation").combine_chunks()
            )


def _blocks_of_lines(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Line number of the first line, and lines without their ends; a file's last line may lack its end."""
    line_number = 1
    rest = b""
    for data in read_ahead(path, _BLOCK_BYTES):
        whole, newline, tail = (rest + data).rpartition(b"\n")
        rest = tail
        if newline:
            lines = whole.split(b"\n")
            yield line_number, lines
            line_number += len(lines)
    if rest:
        yield line_number, [rest]


def _parse(
    lines: list[bytes], separator: bytes, columns: tuple[int, int], path: Path, first_line: int
) -> PairBlock:
    left_column, right_column = columns
    needed = max(columns)
    left: list[str] = []
    right: list[str] = []
    for number, line in enumerate(lines, start=first_line):
        fields = line.rstrip(b"\r").split(separator)
        if len(fields) <= needed:
            raise InputError(
                f"{len(fields)} fields, column {needed} (counted from 0) is wanted",
                path,
                number,
                f"Fields are parted by {separator.decode()!r}; name others with format and columns.",
            )
        try:
            left.append(fields[left_column].decode("utf-8").strip())
            right.append(fields[right_column].decode("utf-8").strip())
        except UnicodeDecodeError as error:
            raise InputError("not UTF-8 text", path, number, "Convert the file to UTF-8.") from error
    return PairBlock(pa.array(left, pa.string()), pa.array(right, pa.string()))
