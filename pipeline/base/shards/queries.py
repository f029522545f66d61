"""A query of DuckDB over columns of shards, out of core, that ends when the process is told to."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from paraforge.base.errors import InputError, first_line
from paraforge.base.files import remove_directory
from paraforge.base.interrupts import check_interrupt

_MEMORY = "1GB"
_MOST_THREADS = 8


def run_query(sql: str, tables: Mapping[str, ds.Dataset], directory: Path, what: str) -> Path:
    """Write the rows that a query selects to a Parquet file, with at most 1 GB of memory.

    sql: of this program, never a user's. tables: what it reads, by name. directory: for the file and what
    exceeds the memory; what is in it is removed. what: what cannot be done if the query fails.

    Raises InputError: the disk is full. Interrupted: SIGTERM or Ctrl-C.
    """
    import duckdb  # here, as it takes a tenth of a second

    remove_directory(directory)
    directory.mkdir(parents=True)
    result = directory / "result.parquet"
    target = str(result).replace("'", "''")
    settings: dict[str, Any] = {"memory_limit": _MEMORY, "temp_directory": str(directory)}
    with duckdb.connect(config=settings) as connection, ThreadPoolExecutor(1) as pool:
        cores = int(connection.execute("SELECT current_setting('threads')").fetchall()[0][0])
        connection.execute(f"SET threads = {min(cores, _MOST_THREADS)}")
        for name, table in tables.items():
            # An Arrow dataset, as DuckDB would take some characters of a path for a pattern.
            connection.register(name, table)
        running = pool.submit(connection.execute, f"COPY ({sql}) TO '{target}' (FORMAT parquet)")
        try:
            while not running.done():  # DuckDB does not look for signals
                check_interrupt()
                wait([running], timeout=0.2)
            running.result()
        except duckdb.Error as error:
            raise InputError(f"{what}: {first_line(error)}", directory.parent) from error
        except BaseException:
            connection.interrupt()
            raise
    return result
