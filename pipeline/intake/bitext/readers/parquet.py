"""Reads Parquet files: any string columns, nested ones by dotted path."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraforge.base.errors import InputError, one_line
from paraforge.base.shards.schema import holds_text
from paraforge.base.text.compression import refuse_lfs_pointer
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.block import REJECT_MALFORMED, Block, text_of
from paraforge.intake.bitext.source import ONLY, NamedColumnSource, Where

_BATCH_ROWS = 16_384


class ParquetSource(NamedColumnSource):
    """Parquet files; nested columns as ``translation.cs``."""

    format: Literal["parquet"]

    def read(self, paths: Mapping[str, Path], reading: Reading) -> Iterator[Block]:
        """Read a Parquet file batch by batch; a null is blank text. A column ``a.b`` is field b of struct a.

        Raises InputError: not Parquet, damaged or truncated, or an unsupported feature; no such column; a
            text column of another type; in a strict reading, bytes that are not UTF-8 or a score that is not
            finite.
        """
        path, where = paths[ONLY], self.where
        wanted = self.names if where is None else {**self.names, "where": str(where.column)}
        if not path.stat().st_size:
            raise InputError("the file is empty", path)
        refuse_lfs_pointer(path)
        row = 0
        try:
            with pq.ParquetFile(
                path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
            ) as file:
                fields = {
                    name: _check(path, file.schema_arrow, name, column) for name, column in wanted.items()
                }
                if file.metadata.num_rows == 0:
                    raise InputError("the file has no rows", path)
                leaves = sorted({".".join(field) for field in fields.values()})
                for batch in file.iter_batches(_BATCH_ROWS, columns=leaves, use_threads=False):
                    arrays = {name: _resolve(batch, field) for name, field in fields.items()}
                    yield _block(path, arrays, row, reading.strict, where)
                    row += batch.num_rows
                if row != file.metadata.num_rows:
                    raise InputError(
                        f"not a complete Parquet file: {row:,} rows, "
                        f"its footer says {file.metadata.num_rows:,}",
                        path,
                    )
        except pa.ArrowNotImplementedError as error:
            raise InputError(f"uses an unsupported feature of Parquet: {one_line(error)}", path) from error
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last of a column's name
            where_it_was = f"after row {row:,}: " if row else ""
            raise InputError(f"not a complete Parquet file: {where_it_was}{one_line(error)}", path) from error


def _check(path: Path, schema: pa.Schema, name: str, column: str) -> tuple[str, ...]:
    parts = (column,) if column in schema.names else tuple(column.split("."))
    kind: pa.DataType = pa.struct(list(schema))
    for part in parts:
        if pa.types.is_struct(kind) and [field.name for field in kind].count(part) > 1:
            raise InputError(f"more than one column {part!r} for {name}", path)
        if not pa.types.is_struct(kind):
            raise InputError(f"no column {column!r} for {name}: there is {kind} before {part!r}", path)
        if kind.get_field_index(part) < 0:
            names = one_line(", ".join(schema.names))
            raise InputError(f"no column {column!r} for {name}; it has {names}", path)
        kind = kind.field(part).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = holds_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if name == "score" and not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise InputError(f"column {column!r} for the score is {kind}, not numbers", path)
    if name == "where" and pa.types.is_nested(kind):
        raise InputError(f"column {column!r} of the condition 'where' is {kind}, not a single value", path)
    if name not in ("score", "where") and not is_text:
        raise InputError(f"column {column!r} for {name} is {kind}, not text", path)
    return parts


def _resolve(batch: pa.RecordBatch, field: tuple[str, ...]) -> pa.Array:
    array = batch.column(field[0])
    for part in field[1:]:
        array = pc.struct_field(array, part)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _block(path: Path, arrays: dict[str, pa.Array], row: int, strict: bool, where: Where | None) -> Block:
    rows = len(next(iter(arrays.values())))
    block = Block(np.arange(row + 1, row + rows + 1, dtype=np.int64), {}, np.zeros(rows, dtype=np.uint8))
    for name, array in arrays.items():
        if name == "score":
            scores = array.cast(pa.float32(), safe=False)
            finite = pc.fill_null(pc.is_finite(scores), True)
            _refuse(
                path, block, ~finite.to_numpy(zero_copy_only=False), "malformed", strict, "a score not finite"
            )
            block.scores = pc.if_else(finite, scores, pa.scalar(None, pa.float32()))
        elif name != "where":
            block.texts[name] = _text(path, block, name, array, strict)
    if where is not None:
        block.refuse(~where.holds(_tested(path, block, arrays["where"], strict)), "not_selected")
    return block


def _tested(path: Path, block: Block, array: pa.Array, strict: bool) -> pa.Array:
    if pa.types.is_floating(array.type):
        # numpy prints the float32 0.1 as "0.1"; converted to a Python float it would be 0.10000000149011612.
        numbers = array.drop_null().to_numpy()
        texts = np.full(len(array), text_of(None), dtype=object)
        texts[array.is_valid().to_numpy(zero_copy_only=False)] = [text_of(number) for number in numbers]
        return pa.array(texts, pa.string())
    return _text(path, block, "the column of 'where'", array, strict)


def _text(path: Path, block: Block, name: str, array: pa.Array, strict: bool) -> pa.Array:
    try:
        text = array.cast(pa.string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        raw = array.cast(pa.binary()).to_pylist()
        broken = np.array([not _is_utf8(value) for value in raw])
        _refuse(path, block, broken, "invalid_utf8", strict, f"{name} is not UTF-8")
        text = pa.array([None if v is None else v.decode("utf-8", "replace") for v in raw], pa.string())
    return pc.fill_null(text, "")


def _is_utf8(value: bytes | None) -> bool:
    try:
        if value is not None:
            value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _refuse(path: Path, block: Block, rows: np.ndarray, reason: str, strict: bool, what: str) -> None:
    if strict and rows.any():
        raise InputError(what, path, int(block.lines[np.flatnonzero(rows)[0]]), REJECT_MALFORMED)
    block.refuse(rows, reason)
