"""A DuckDB database in memory that has views of a published corpus and can reach nothing else, and one SQL
statement of the user on it: looked over, run, and its rows as they come."""

# ruff: noqa: S608 - names and paths are quoted

from __future__ import annotations

import logging
import re
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paraforge.base.errors import InputError, Interrupted, first_line
from paraforge.base.files import unfinished_paths
from paraforge.corpus.publication.datasets import Dataset

if TYPE_CHECKING:
    import duckdb


logger = logging.getLogger(__name__)

# A reader decodes a row group a thread: more threads only cost memory.
MOST_THREADS = 8
MEMORY = "600MB"
SPILL_LIMIT = "200GB"
# Seconds that a database has for closing.
_CLOSING = 2.0
_GLOB = frozenset("*?[")
# Columns with the name of a word of SQL, where they are not quoted.
_BARE_WORD = re.compile(r'(?<!")\b(group(?!\s+by\b)|pivot(?!\s*\(|\s+\w+\s+on\b))\b(?!")', re.IGNORECASE)
# Also a row group of a Parquet file that is written.
ROWS_AT_ONCE = 50_000
_EXPLAIN = re.compile(r"^\s*EXPLAIN\s+(ANALYZE\s+)?(?!\()", re.IGNORECASE)


@contextmanager
def open_database(
    datasets: Sequence[Dataset],
    *,
    allow_files: bool = False,
    threads: int = 0,
    memory: str = MEMORY,
    names: Mapping[str, Dataset] | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with a view of each dataset.

    What is larger than the memory goes to a temporary directory that is removed in the end. Unless
    ``allow_files``, no other file can be read or written, no extension loaded and no setting changed; the
    network is never used.

    datasets: each becomes a view of its name. allow_files: let statements read and write other files.
    threads: 0 for one per core, at most 8. memory: what DuckDB may use, e.g. ``600MB``.
    names: further views, by name.

    Raises InputError: a file cannot be read.
    """
    import duckdb

    views = {dataset.name: dataset for dataset in datasets} | dict(names or {})
    with tempfile.TemporaryDirectory(prefix="paraforge-query-") as spill:
        unfinished_paths.add(Path(spill))
        with explained("Memory is given as, e.g., 600MB or 2GB."):
            connection = duckdb.connect(
                ":memory:",
                config={
                    "autoinstall_known_extensions": False,
                    "autoload_known_extensions": False,
                    # Otherwise a name in a statement may mean a variable of this program.
                    "python_enable_replacements": False,
                    "memory_limit": memory,
                    "temp_directory": spill,
                    "max_temp_directory_size": SPILL_LIMIT,
                },
            )
        try:
            with explained():
                # The default is the number of cores, as far as a container's limits allow.
                cores = int(connection.execute("SELECT current_setting('threads')").fetchall()[0][0])
                connection.execute(f"SET threads = {threads or min(cores, MOST_THREADS)}")
                for name, dataset in views.items():
                    _create_view(connection, name, dataset)
            if not allow_files:
                listed = [files for dataset in views.values() for files in (dataset.files, *dataset.aligned)]
                files = [str(path) for files in listed for path in files]
                _lock(connection, files)
            with _interruptible(connection):
                yield connection
        finally:
            # DuckDB 1.5 may wait for ever for the tasks of a statement that was interrupted.
            closing = threading.Thread(target=connection.close, daemon=True)
            closing.start()
            closing.join(_CLOSING)


@contextmanager
def _interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """End the running statement at once on Ctrl-C and SIGTERM: DuckDB does not always look for signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived, sent = socket.socketpair()
    sent.setblocking(False)
    done = threading.Event()

    def interrupt() -> None:
        # The other end is closed when the block ends.
        if arrived.recv(1):
            while not done.wait(0.1):
                connection.interrupt()

    watcher = threading.Thread(target=interrupt, name="query-interrupts", daemon=True)
    watcher.start()
    previous = signal.set_wakeup_fd(sent.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        done.set()
        sent.close()
        watcher.join()
        arrived.close()


def files_literal(files: Sequence[Path]) -> str:
    """Paths as a list in SQL. Raises InputError: DuckDB would take a path for a pattern."""
    for path in files:
        if _GLOB & set(str(path)):
            raise InputError(
                "DuckDB takes *, ? and [ in a path for a pattern",
                path.parent,
                remedy="Rename the directory, or query a copy.",
            )
    quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in files)
    return f"[{quoted}]"


def rows_of(files: Sequence[Path], *options: str) -> str:
    """Files, at least one, as a relation in SQL.

    options: of DuckDB's ``read_parquet``, e.g. ``filename = true``.
    """
    return f"read_parquet({', '.join([files_literal(files), *options])})"


def identifier(name: str) -> str:
    """A name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, dataset: Dataset) -> None:
    if dataset.files:
        columns = ", ".join(identifier(column) for column in dataset.schema.names)
        found = " POSITIONAL JOIN ".join(map(rows_of, (dataset.files, *dataset.aligned)))
        connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT {columns} FROM {found}")
        return
    # No file, no rows: the columns are known from the manifest.
    empty: pa.Table = dataset.schema.remove_metadata().empty_table()
    connection.register("__empty", empty)
    connection.execute(f"CREATE TABLE {identifier(name)} AS SELECT * FROM __empty")
    connection.unregister("__empty")


def _lock(connection: duckdb.DuckDBPyConnection, files: list[str]) -> None:
    connection.execute("SET allowed_paths = ?", [files])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


@contextmanager
def explained(remedy: str | None = None) -> Iterator[None]:
    """Turn what DuckDB raises into an error for the user.

    Raises:
        InputError: the statement is wrong, is not allowed, or met a damaged file.
        Interrupted: Ctrl-C or SIGTERM.
    """
    import duckdb

    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if not is_interruption(error):
            raise
        raise Interrupted("interrupted") from error
    except duckdb.PermissionException as error:
        raise InputError(
            f"not allowed: {first_line(error)}",
            remedy="A query reads the corpus only; with --allow-files it may read and write other files.",
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            f"the query needs more memory: {first_line(error)}", remedy="Raise --memory."
        ) from error
    except (duckdb.IOException, duckdb.InvalidInputException, duckdb.InternalException) as error:
        damaged = "parquet" in str(error).lower() or "decompress" in str(error).lower()
        raise InputError(
            str(error).strip() if not damaged else f"a file cannot be read: {first_line(error)}",
            remedy="'paraforge verify' says which files are damaged." if damaged else remedy,
        ) from error
    except duckdb.Error as error:
        # DuckDB's message may point into the statement with lines of its own.
        lines = [line.rstrip() for line in str(error).strip().splitlines() if line.strip()]
        if isinstance(error, duckdb.ParserException) and (bare := _BARE_WORD.search(str(error))):
            name = bare[1].lower()
            remedy = f'{name.upper()} is a word of SQL: the column is "{name}", in quotation marks.'
        raise InputError("\n".join([*lines, *([remedy] if remedy else [])])) from error


def is_interruption(error: Exception) -> bool:
    """Whether DuckDB, or Arrow for it, says that a statement was interrupted."""
    return "interrupted" in str(error).lower()


def fetch(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
    """The result of a small query of our own."""
    with explained():
        return arrow_reader(connection.sql(sql, params=list(parameters))).read_all()


def arrow_reader(relation: Any, rows: int = 50_000) -> pa.RecordBatchReader:
    """A relation's rows as they are computed."""
    # The method has had another name before DuckDB 1.4.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)


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
