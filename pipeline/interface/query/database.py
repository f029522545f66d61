"""A DuckDB database in memory that has views of a published corpus and can reach nothing else."""

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
                files = [str(path) for dataset in views.values() for path in dataset.files]
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
        connection.execute(
            f"CREATE VIEW {identifier(name)} AS SELECT {columns} FROM {rows_of(dataset.files)}"
        )
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
