"""Reads Parquet files: any string columns, nested ones by dotted path."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraforge.base.errors import InputError, one_line
from paraforge.base.shards.schema import holds_bytes, holds_text
from paraforge.base.text.compression import refuse_lfs_pointer
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.source import ONLY, Block, NamedColumnSource

_BATCH_ROWS = 16_384


class ParquetSource(NamedColumnSource):
    """Parquet files; nested columns as ``translation.cs``."""

    format: Literal["parquet"]

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read a Parquet file in batches; a null becomes blank text. A column ``a.b`` is field b of struct a.

        Raises InputError if :func:`parquet_tables` does, or if a column has the wrong type; in a strict
        reading, also if bytes are not UTF-8 or a score is not finite.
        """
        path, row = paths[ONLY], 0
        for table in parquet_tables(path, _BATCH_ROWS, list(self.names.values())):
            if row == 0:
                for name, column in self.names.items():
                    _check(path, table.schema, name, column)
            block = Block(
                np.arange(row + 1, row + len(table) + 1, dtype=np.int64), {}, np.zeros(len(table), np.uint8)
            )
            for name, column in self.names.items():
                array = table[column].combine_chunks()
                if name == "score":
                    block.scores = _scores(path, block, array, reading.strict)
                else:
                    block.texts[name] = _text(path, block, name, array, reading.strict)
            yield block
            row += len(table)


def parquet_tables(path: Path, rows: int, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a Parquet file in tables; fields of structs are columns ``a.b``.

    rows: most rows of a table. columns: names of the columns to read; all by default.
    Raises InputError if the file is empty, not Parquet, damaged or truncated, or uses an unsupported feature;
    or if not exactly one column has one of the names.
    """
    if not path.stat().st_size:
        raise InputError("the file is empty", path)
    refuse_lfs_pointer(path)
    done = 0
    try:
        with pq.ParquetFile(
            path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
        ) as file:
            if file.metadata.num_rows == 0:
                raise InputError("the file has no rows", path)
            every = flattened(file.schema_arrow.empty_table()).column_names
            for column in columns or ():
                if every.count(column) != 1:
                    problem = "more than one column" if column in every else "no column"
                    raise InputError(f"{problem} {column!r}; it has {one_line(', '.join(every))}", path)
            for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                yield flattened(pa.Table.from_batches([batch]))
                done += batch.num_rows
            if done != file.metadata.num_rows:
                raise InputError(
                    f"not a complete Parquet file: {done:,} rows, its footer says {file.metadata.num_rows:,}",
                    path,
                )
    except pa.ArrowNotImplementedError as error:
        raise InputError(f"uses an unsupported feature of Parquet: {one_line(error)}", path) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # a column's name may not be UTF-8
        where = f"after row {done:,}: " if done else ""
        raise InputError(f"not a complete Parquet file: {where}{one_line(error)}", path) from error


def flattened(table: pa.Table) -> pa.Table:
    """Return a table in which fields of structs are columns ``a.b``."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def _check(path: Path, schema: pa.Schema, name: str, column: str) -> None:
    kind = schema.field(column).type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if name == "score" and not (pa.types.is_floating(value) or pa.types.is_integer(value)):
        raise InputError(f"column {column!r} for the score is {kind}, not numbers", path)
    if name != "score" and not (holds_text(kind) or holds_bytes(kind)):
        raise InputError(f"column {column!r} for {name} is {kind}, not text", path)


def _scores(path: Path, block: Block, array: pa.Array, strict: bool) -> pa.Array:
    scores = array.cast(pa.float32(), safe=False)
    finite = pc.fill_null(pc.is_finite(scores), True)
    infinite = ~finite.to_numpy(zero_copy_only=False)
    block.reject(infinite, "malformed", path, strict, "a score is not finite")
    return pc.if_else(finite, scores, pa.scalar(None, pa.float32()))


def _text(path: Path, block: Block, name: str, array: pa.Array, strict: bool) -> pa.Array:
    try:
        text = array.cast(pa.string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        raw = [value or b"" for value in array.cast(pa.binary()).to_pylist()]
        decoded = [value.decode("utf-8", "replace") for value in raw]
        broken = [text.encode() != value for text, value in zip(decoded, raw, strict=True)]
        block.reject(np.array(broken), "invalid_utf8", path, strict, f"{name} is not UTF-8")
        text = pa.array(decoded, pa.string())
    return pc.fill_null(text, "")
