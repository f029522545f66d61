"""Finds rows of a corpus that have the same key, and the first of them, out of core with DuckDB. Also runs
other DuckDB queries over shards so that SIGTERM and Ctrl-C stop them."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError, first_line
from paraforge.base.files import atomic_path, remove_directory, scratch_directory, temporary_directory

_MEMORY = "1GB"
_MOST_THREADS = 8
_RANKS = "ranks.npy"
_BATCH_ROWS = 1 << 20
_ENTRIES = pa.schema({"high": pa.uint64(), "low": pa.uint64(), "row": pa.int64()})
_REPEATED = """
    SELECT row, row_number() OVER same - 1 AS earlier, first_value(row) OVER same AS first
    FROM entries
    WINDOW same AS (PARTITION BY high, low ORDER BY row)
    QUALIFY earlier > 0
    ORDER BY row
"""

Keys = NDArray[np.uint64]
Rows = NDArray[np.int64]


@contextmanager
def scratch_database(directory: Path, memory: str = _MEMORY, what: str | None = None) -> Iterator[Any]:
    """Open a DuckDB database in memory. What exceeds its memory limit goes to a directory in ``directory``
    that is removed at the end.

    what: what failed, for the error message. Raises InputError if DuckDB fails, e.g. on a full disk.
    """
    import duckdb  # imported here because it takes a tenth of a second

    try:
        with ExitStack() as stack:
            place = stack.enter_context(scratch_directory(directory / "spilled"))
            if "\\" in str(place):  # DuckDB takes it for a slash
                link = stack.enter_context(temporary_directory()) / "link"
                link.symlink_to(place.absolute())
                place = link
            settings: dict[str, Any] = {"memory_limit": memory, "temp_directory": str(place)}
            connection = stack.enter_context(duckdb.connect(config=settings))
            # More threads would need more memory.
            cores = int(connection.execute("SELECT current_setting('threads')").fetchall()[0][0])
            connection.execute(f"SET threads = {min(cores, _MOST_THREADS)}")
            yield connection
    except duckdb.Error as error:
        raise InputError(": ".join(filter(None, (what, first_line(error)))), directory) from error


def run_query(sql: str, tables: Mapping[str, Any], directory: Path, what: str) -> Path:
    """Write the rows that a query selects to a Parquet file. DuckDB's memory limit is 1 GB.

    sql: the query; never text from a user. tables: Arrow datasets or readers by name.
    directory: where the file and temporary files go; its content is removed first.
    what: what failed, for the error message.

    Raises InputError if the disk is full.
    """
    remove_directory(directory)
    directory.mkdir(parents=True)
    result = directory / "result.parquet"
    target = str(result).replace("'", "''")
    with scratch_database(directory, what=what) as connection, ThreadPoolExecutor(1) as pool:
        for name, table in tables.items():
            # An Arrow dataset, as DuckDB would take some characters of a path for a pattern.
            connection.register(name, table)
        running = pool.submit(connection.execute, f"COPY ({sql}) TO '{target}' (FORMAT parquet)")
        try:
            running.result()  # not in this thread, because DuckDB does not look for signals
        except BaseException:
            connection.interrupt()
            raise
    return result


def rank_groups(blocks: Iterable[tuple[Keys, Rows]], directory: Path) -> None:
    """Rank a stream of 128-bit keys: count for each row the earlier rows with its key, and find the first of
    them.

    DuckDB sorts the keys with a memory limit of 1 GB, however many rows there are and however often a key is
    repeated. With 30 and 60 million keys the process took 1.6 and 1.7 GB. Disk: 24 bytes per row while rows
    are read, three times that while they are ranked, 24 bytes per *repeated* row afterwards.

    blocks: keys, n x 2, uint64, and their row numbers in ascending order. Omitted rows belong to no group.
    directory: only for the result, see :class:`GroupRanks`; its content is removed first.

    Raises:
        ValueError: the row numbers are not ascending.
        InputError: the disk is full.
    """
    import pyarrow.dataset as ds  # imported here because it imports pandas if that is installed

    remove_directory(directory)
    directory.mkdir(parents=True)
    entries, spilled, last = directory / "keys.parquet", directory / "spilled", -1
    with pq.ParquetWriter(entries, _ENTRIES, use_dictionary=False) as writer:
        for keys, rows in blocks:
            if len(rows) and (rows[0] <= last or bool((np.diff(rows) <= 0).any())):
                raise ValueError("row numbers must be ascending")
            last = int(rows[-1]) if len(rows) else last
            columns = [np.ascontiguousarray(keys[:, 0]), np.ascontiguousarray(keys[:, 1]), rows]
            writer.write_table(pa.table(columns, schema=_ENTRIES))
    # An Arrow dataset, as DuckDB would take some characters of a path for a pattern.
    tables = {"entries": ds.dataset([str(entries)], _ENTRIES, format="parquet")}
    result = run_query(_REPEATED, tables, spilled, "equal keys cannot be found")
    with atomic_path(directory / _RANKS) as output, pq.ParquetFile(result) as file:
        ranked = np.lib.format.open_memmap(output, "w+", np.int64, (3, file.metadata.num_rows))
        begin = 0
        for batch in file.iter_batches(_BATCH_ROWS):
            for place, column in enumerate(batch.columns):
                ranked[place, begin : begin + len(batch)] = column
            begin += len(batch)
        ranked.flush()
    entries.unlink()
    remove_directory(spilled)


class GroupRanks:
    """The result of :func:`rank_groups`: rows that have an earlier row with the same key."""

    def __init__(self, directory: Path) -> None:
        """Open the ranks in ``directory``."""
        self._repeated = np.load(directory / _RANKS, mmap_mode="r", allow_pickle=False)

    def of(self, start: int, stop: int) -> tuple[Rows, Rows]:
        """Return for rows ``start`` to ``stop - 1`` the number of earlier rows with the same key, and the
        first of all.

        A row without an earlier one has 0 and its own number. Cheapest when asked block by block in order.
        """
        earlier = np.zeros(stop - start, dtype=np.int64)
        first = np.arange(start, stop, dtype=np.int64)
        low, high = np.searchsorted(self._repeated[0], (start, stop))
        at = self._repeated[0, low:high] - start
        earlier[at] = self._repeated[1, low:high]
        first[at] = self._repeated[2, low:high]
        return earlier, first
