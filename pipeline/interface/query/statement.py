"""One SQL statement of the user: looked over, run, and its rows as they come."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from paraforge.base.errors import InputError, Interrupted
from paraforge.corpus.publication.datasets import Dataset
from paraforge.interface.query.database import arrow_reader, explained, is_interruption

if TYPE_CHECKING:
    import duckdb

# Also a row group of a Parquet file that is written.
ROWS_AT_ONCE = 50_000
_EXPLAIN = re.compile(r"^\s*EXPLAIN\s+(ANALYZE\s+)?(?!\()", re.IGNORECASE)


@dataclass(frozen=True)
class Rows:
    """The rows of a result; ``batches`` can be gone through once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def run_statement(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    *,
    allow_files: bool = False,
    views: Mapping[str, Dataset] | None = None,
    missing: Mapping[str, str] | None = None,
) -> Rows:
    """Run one statement and give its rows as they are computed.

    connection: see :func:`paraforge.interface.query.database.open_database`.
    sql: a query; with ``allow_files`` any single statement.
    views, missing: which views there are, and why others are not, for the messages.

    Raises InputError: the statement is wrong, is more than one, or is none that only reads.
    """
    remedy = _remedy(sql, views or {}, missing or {})
    with explained():
        statements = connection.extract_statements(sql)
    # DuckDB 1 makes several of one PIVOT, and then says the text of none.
    if len(statements) != 1 and (not statements or any(one.query for one in statements)):
        message = "there is no statement" if not statements else f"{len(statements)} statements"
        raise InputError(message, remedy="Give one query, e.g. SELECT count(*) FROM corpus.")
    if not allow_files:
        _check_reads(connection, sql)
    with explained(remedy):
        relation = connection.sql(sql)
        if relation is None:
            # A statement without rows, such as COPY.
            return Rows(pa.schema([]), iter(()))
        reader = arrow_reader(relation, ROWS_AT_ONCE)
    names = _distinct(reader.schema.names)
    schema = pa.schema([field.with_name(name) for name, field in zip(names, reader.schema, strict=True)])
    return Rows(schema, (batch.rename_columns(names) for batch in _batches(reader)))


def _distinct(names: list[str]) -> list[str]:
    """Names of columns, a repeated one with a number: JSON and Parquet would lose the others."""
    found: list[str] = []
    for name in names:
        number, distinct = 0, name
        while distinct in found:
            number += 1
            distinct = f"{name}_{number}"
        found.append(distinct)
    return found


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            with explained():
                batch = reader.read_next_batch()
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as error:
            if is_interruption(error):
                raise Interrupted("interrupted") from error
            # What DuckDB raises while rows are read comes wrapped by Arrow.
            raise InputError(
                f"the query failed: {str(error).strip()}",
                remedy="'paraforge verify' says whether a file is damaged.",
            ) from error
        yield batch


def _check_reads(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse what is no query: the database could not do harm outside, but its own files are the corpus."""
    import duckdb

    with explained():
        *made, last = connection.extract_statements(sql)
        kind = duckdb.StatementType.MULTI if made else last.type
        explain = kind == duckdb.StatementType.EXPLAIN
        if explain:
            inner = connection.extract_statements(_EXPLAIN.sub("", sql, count=1))
            kind = inner[0].type if len(inner) == 1 else kind
    pivot = kind == duckdb.StatementType.MULTI and re.match(r"\s*(FROM|PIVOT|SELECT|WITH)\b", sql, re.I)
    if kind != duckdb.StatementType.SELECT and not pivot:
        raise InputError(
            f"not a query but {kind.name.replace('_', ' ')}",
            remedy="Give a SELECT; results are written with --output FILE. "
            "With --allow-files any statement is run.",
        )


def _remedy(sql: str, views: Mapping[str, Dataset], missing: Mapping[str, str]) -> str | None:
    """What to say after an error in the statement: a view that is not there, or what there is."""
    for name, why in missing.items():
        if re.search(rf"\b{re.escape(name)}\b", sql, re.IGNORECASE):
            return f"There is no view '{name}': {why}"
    return f"Views: {', '.join(views)}. 'DESCRIBE corpus' lists its columns." if views else None
