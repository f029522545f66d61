"""Opens DuckDB databases in memory with views of published datasets, and writes query results to files."""

# ruff: noqa: S608 - names and paths are quoted

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from paraforge.base.errors import InputError, Interrupted, first_line
from paraforge.base.files import atomic_path, scratch_directory, temporary_directory
from paraforge.corpus.publication.datasets import Dataset

if TYPE_CHECKING:
    import duckdb

# DuckDB reads one row group per thread, so more threads need more memory.
MOST_THREADS = 8
MEMORY = "600MB"
SPILL_LIMIT = "200GB"
# TSV files are written, as they are read, without quoting: tabs and line ends in a text become a space.
_TSV_TEXTS: Final = r"SELECT regexp_replace(COLUMNS(*)::VARCHAR, '[\t\n\r]+', ' ', 'g') FROM"
_TEXT_FORMATS: Final = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t', QUOTE '', ESCAPE ''",
    ".json": "FORMAT json, ARRAY true",
    ".jsonl": "FORMAT json",
}


@contextmanager
def open_database(
    views: Mapping[str, Dataset] | None = None, memory: str = MEMORY
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with a view of each dataset, by name. It never uses the network.

    Results that do not fit in memory are kept in a temporary directory, which is removed at the end.
    memory: limit for DuckDB, such as ``600MB``. Raises InputError if a file cannot be read.
    """
    import duckdb

    with temporary_directory() as spill:
        with explain_errors("Use a size such as 600MB or 2GB."):
            connection = duckdb.connect(
                ":memory:",
                config={
                    "autoinstall_known_extensions": False,
                    # Otherwise a name in a statement may mean a variable of this program.
                    "python_enable_replacements": False,
                    "memory_limit": memory,
                    "temp_directory": str(spill),
                    "max_temp_directory_size": SPILL_LIMIT,
                },
            )
        with connection:
            with explain_errors():
                # The default is the number of cores, as far as a container's limits allow.
                cores = int(connection.execute("SELECT current_setting('threads')").fetchall()[0][0])
                connection.execute(f"SET threads = {min(cores, MOST_THREADS)}")
                for name, dataset in (views or {}).items():
                    _create_view(connection, name, dataset)
            yield connection


def files_literal(files: Iterable[Path | str]) -> str:
    """Return paths as an SQL list of strings."""
    return f"[{', '.join(map(literal, map(str, files)))}]"


def rows_of(files: Sequence[Path], *options: str) -> str:
    """Return the SQL that reads Parquet files, at least one.

    options: further arguments of DuckDB's ``read_parquet``. Paths are never treated as patterns, and a
    directory called ``source=x`` adds no column.
    """
    paths = files_literal(glob.escape(str(file)) for file in files)
    return f"read_parquet({', '.join([paths, 'hive_partitioning = false', *options])})"


def rows_at(places: Iterable[Mapping[str, Any]]) -> str:
    """Return the SQL that selects single rows with all their columns.

    places: ``filename`` and ``file_row_number`` of each row, at least one; the result has these columns too.
    If a file lacks a column, its rows have NULL there.
    """
    rows: dict[str, list[str]] = {}
    for place in places:
        rows.setdefault(place["filename"], []).append(str(place["file_row_number"]))
    return " UNION ALL BY NAME ".join(
        f"SELECT * FROM {rows_of([Path(path)], 'filename = true', 'file_row_number = true')} "
        f"WHERE file_row_number IN ({', '.join(numbers)})"
        for path, numbers in rows.items()
    )


def draw_key(seed: int, *columns: str) -> str:
    """Return the SQL of a hash of columns and seed; the rows with the smallest hashes are a random sample.

    columns: together unique for each row.
    """
    return f"md5_number_lower(concat_ws(chr(0), {', '.join([*columns, str(seed)])}))"


def identifier(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, dataset: Dataset) -> None:
    if dataset.files:
        columns = ", ".join(identifier(column) for column in dataset.schema.names)
        tables = " POSITIONAL JOIN ".join(map(rows_of, (dataset.files, *dataset.aligned)))
        connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT {columns} FROM {tables}")
        return
    # A dataset without files: its columns are in the manifest.
    empty: pa.Table = dataset.schema.remove_metadata().empty_table()
    connection.register("__empty", empty)
    connection.execute(f"CREATE TABLE {identifier(name)} AS SELECT * FROM __empty")
    connection.unregister("__empty")


@contextmanager
def explain_errors(remedy: str | None = None) -> Iterator[None]:
    """Turn DuckDB's exceptions into errors for the user.

    Raises:
        InputError: the statement is wrong, or met a damaged file.
        Interrupted: Ctrl-C or SIGTERM.
    """
    import duckdb

    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupted" not in str(error).lower():
            raise
        raise Interrupted("interrupted") from error
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            f"the query needs more memory: {first_line(error)}", remedy="Raise --memory of 'paraforge query'."
        ) from error
    except UnicodeDecodeError as error:  # a message that quotes bytes
        raise _damaged(error) from error
    except (duckdb.IOException, duckdb.InvalidInputException, duckdb.InternalException) as error:
        text = str(error).lower()
        if "no space left" in text:
            raise InputError("the disk is full", remedy="Free some space, and try again.") from error
        missing = any(words in text for words in ("no files found", "cannot open file"))
        if not missing and any(word in text for word in ("parquet", "decompress")):
            raise _damaged(error) from error
        raise InputError(str(error).strip(), remedy=remedy) from error
    except duckdb.Error as error:
        # Errors for damaged page headers (from Thrift) and for missing extensions have the base type.
        if type(error) is duckdb.Error and "extension" not in str(error):
            raise _damaged(error) from error
        # DuckDB's message may have several lines that quote the statement.
        lines = [line.rstrip() for line in str(error).strip().splitlines() if line.strip()]
        if isinstance(error, duckdb.ParserException):
            lines.append('Put column names that are SQL keywords in quotation marks: "group", "pivot".')
        raise InputError("\n".join([*lines, *([remedy] if remedy else [])])) from error


def _damaged(error: Exception) -> InputError:
    remedy = "'paraforge verify' says which files are damaged."
    return InputError(f"a file cannot be read: {first_line(error)}", remedy=remedy)


def fetch(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """Return the result of a query that this program wrote, as a table in memory."""
    with explain_errors():
        return connection.sql(sql).to_arrow_table()


def copy_options(output: Path) -> str:
    """Return the options of DuckDB's COPY for a file's ending. Raises InputError if the ending is unknown."""
    name = output.name.lower()
    if name.endswith(".parquet"):
        return "FORMAT parquet, COMPRESSION zstd"
    options = _TEXT_FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    if options is None:
        raise InputError(
            f"cannot infer the format from the extension '{output.suffix}'",
            output,
            remedy=f"Use .parquet, {', '.join(_TEXT_FORMATS)}; text formats also with .gz.",
        )
    return f"{options}, COMPRESSION {'gzip' if name.endswith('.gz') else 'none'}"


def write_relation(relation: duckdb.DuckDBPyRelation, output: Path) -> int:
    """Write the rows of a query to a file in the format of its ending, and return their number.

    The file is written completely or not at all.
    """
    options = copy_options(output)
    rows = "SELECT * FROM __rows"
    if _TEXT_FORMATS[".tsv"] in options:
        rows = f"{_TSV_TEXTS} __rows"
    with atomic_path(output) as temporary, explain_errors():
        exact = _exact_in_json if "json" in options else _exact_in_parquet
        if "json" in options or "parquet" in options:
            columns = zip(map(identifier, relation.columns), map(str, relation.types), strict=True)
            changes = [f"{value} AS {name}" for name, kind in columns if (value := exact(name, kind))]
            rows = f"SELECT * REPLACE ({', '.join(changes)}) FROM __rows" if changes else rows
        copied: Any = relation.query("__rows", f"COPY ({rows}) TO {literal(str(temporary))} ({options})")
        return int(copied.fetchall()[0][0])


def _exact_in_json(name: str, kind: str) -> str | None:
    """Return the SQL of a column for JSON, which has no NaN and no infinity; None if the column can stay."""
    if kind in ("FLOAT", "DOUBLE"):
        return f"if(isfinite({name}), {name}, NULL)"
    if not re.search("FLOAT|DOUBLE|JSON|VARIANT", kind):
        return None
    message = f"column {name} has NaN or infinity in a nested value, which JSON does not allow"
    no_texts = rf"""regexp_replace(to_json({name})::VARCHAR, '"(?:[^"\\]|\\.)*"', '', 'g')"""
    return f"if(regexp_matches({no_texts}, 'NaN|Inf'), error({literal(message)}), {name})"


def _exact_in_parquet(name: str, kind: str) -> str | None:
    """Return the SQL of a column for Parquet, where DuckDB rounds 128-bit integers; None if it can stay."""
    decimal = re.sub(r"\bU?HUGEINT(?=[\[),]|$)", "DECIMAL(38,0)", kind)
    return f"{name}::{decimal}" if decimal != kind else None


def write_table(table: pa.Table, output: Path) -> int:
    """Write the rows of a table to a file like :func:`write_relation`, and return their number."""
    with open_database() as connection:
        return write_relation(connection.from_arrow(table), output)


@contextmanager
def parquet_of(output: Path) -> Iterator[Path]:
    """Yield a path for a Parquet file; after the block, its rows are in ``output`` in its format."""
    if output.name.lower().endswith(".parquet"):
        yield output
        return
    with scratch_directory(output) as place:
        parquet = place / "rows.parquet"
        yield parquet
        with open_database() as connection:
            write_relation(connection.sql(f"FROM {rows_of([parquet])}"), output)
