"""Declares the columns that are not scores (lineage, texts, translation and fate, in order) and selects rows
by them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def column(name: str, kind: pa.DataType, description: str) -> pa.Field:
    """Return a column's field with its name, type and meaning."""
    return pa.field(name, kind, metadata={"description": description})


def holds_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains strings, of any layout and perhaps dictionary-encoded."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def holds_bytes(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains bytes, of any layout and perhaps dictionary-encoded."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.binary(), pa.large_binary(), pa.binary_view())


SCHEMA_VERSION = 3

_DECLARED = [
    # lineage
    column("source", pa.string(), "name of the bitext the pair comes from"),
    column("line", pa.int64(), "line (or record) number in that bitext, counted from 1"),
    column(
        "pivot",
        pa.string(),
        "language translated from; cs+de: both sides are translations of one reference, `source` is A/B, "
        "`line` and `source_text` are of A, `translation_score` of B, marks of either",
    ),
    column("translation_line", pa.int64(), "of cs+de: line in B"),
    column("original", pa.string(), "of cs+de: the reference that both sides are translations of"),
    column("translation_source_text", pa.string(), "of cs+de: foreign-language side of B"),
    # text
    column("source_text", pa.string(), "foreign-language side of the bitext, in any language"),
    column("reference", pa.string(), "English side of the bitext"),
    column("translation", pa.string(), "machine translation of the foreign side into English"),
    # translation
    column(
        "translation_score",
        pa.float32(),
        "mean natural log-probability per target token, end of sentence included",
    ),
    column(
        "given_score", pa.float32(), "score that an existing paraphrase corpus came with, in its own unit"
    ),
    column("rank", pa.int8(), "place of the hypothesis in the beam, 0 is the best"),
    column("source_truncated", pa.bool_(), "the engine saw only the beginning of the foreign side"),
    column(
        "output_truncated",
        pa.bool_(),
        "the hypothesis ended at the length cap, not at the end-of-sentence token",
    ),
    column("empty_output", pa.bool_(), "the hypothesis has no text"),
    column("non_finite", pa.bool_(), "the engine's score was NaN or infinite"),
    column("runaway", pa.bool_(), "the hypothesis repeats the same letters, words or tokens over and over"),
    # publication
    column("group", pa.int64(), "number that all pairs of a group share"),
    # fate
    column("rejected", pa.string(), "name of the first filter that rejected the pair; null if none did"),
    column("failed", pa.string(), "why the pair could not be translated; null if it was"),
    # bookkeeping between the steps, not published
    column("first_row", pa.int64(), "row number of the first pair with the same foreign side"),
]

COLUMNS: dict[str, pa.Field] = {field.name: field for field in _DECLARED}

TEXT_COLUMNS = ("reference", "translation")
FATE_COLUMNS = ("rejected", "failed")
# Marks of a translation.
FLAG_COLUMNS = ("source_truncated", "output_truncated", "empty_output", "non_finite", "runaway")


def alive_rows(table: pa.Table) -> Any:
    """Return which rows no earlier step rejected or failed, as far as the table has those columns: a boolean
    array."""
    alive = pa.repeat(True, table.num_rows)
    for name in FATE_COLUMNS:
        if name in table.column_names:
            alive = pc.and_(alive, pc.is_null(table[name]))
    return alive


def usable_rows(table: pa.Table) -> Any:
    """Return which rows have both texts and were neither rejected nor failed: a pyarrow boolean array."""
    return pc.and_(pc.and_(*(pc.is_valid(table[name]) for name in TEXT_COLUMNS)), alive_rows(table))


def original_rows(table: pa.Table) -> Any:
    """Return which usable rows have a reference from the bitext, not a translation as in a pair of two
    translations: a pyarrow boolean array."""
    usable = usable_rows(table)
    if "translation_line" in table.column_names:
        usable = pc.and_(usable, pc.is_null(table["translation_line"]))
    return usable


def schema_of(
    names: Iterable[str], extra: Iterable[pa.Field] = (), columns: Mapping[str, pa.Field] = COLUMNS
) -> pa.Schema:
    """Return the schema of the named ``columns`` in their declared order, then ``extra`` fields. Raises
    KeyError if a name is unknown."""
    chosen = set(names)
    unknown = chosen - columns.keys()
    if unknown:
        raise KeyError(f"unknown columns: {sorted(unknown)}")
    return pa.schema([field for name, field in columns.items() if name in chosen] + list(extra))


def tables_of(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of a fixed number of rows and a last one with the rest, so that what is
    written does not depend on how it was read."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        while count >= rows:
            merged = pa.concat_tables(waiting)
            yield merged.slice(0, rows)
            waiting = [merged.slice(rows)]
            count -= rows
    if count:
        yield pa.concat_tables(waiting)
