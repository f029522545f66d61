"""Finds, out of core, which rows of a corpus have the same key: duplicates, and who came first; a query of
DuckDB over columns of shards that ends when the process is told to."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError, first_line
from paraforge.base.files import atomic_path, remove_directory
from paraforge.base.interrupts import check_interrupt

_MEMORY = "1GB"
_MOST_THREADS = 8
_HELD_ROWS = 2_000_000
_REPEATED = """
    SELECT row, row_number() OVER same - 1 AS earlier, first_value(row) OVER same AS first
    FROM entries
    WINDOW same AS (PARTITION BY high, low ORDER BY row)
    QUALIFY earlier > 0
    ORDER BY row
"""

Keys = NDArray[np.uint64]
Rows = NDArray[np.int64]


def run_query(sql: str, tables: Mapping[str, Any], directory: Path, what: str) -> Path:
    """Write the rows that a query selects to a Parquet file; DuckDB's limit of memory is 1 GB.

    sql: of this program, never a user's. tables: datasets or readers of Arrow by name.
    directory: for the file and what exceeds the memory; what is in it is removed.
    what: what cannot be done if the query fails.

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
            check_interrupt()  # what reads a table may have been told to stop
            raise InputError(f"{what}: {first_line(error)}", directory.parent) from error
        except BaseException:
            connection.interrupt()
            raise
    return result


class GroupRanker:
    """For each row of a stream of 128-bit keys: how many earlier rows have its key, and which is the first.

    DuckDB sorts the keys with a limit of 1 GB of memory, however many rows there are and however often one
    key is repeated; of 30 and 60 million keys the process had 1.6 and 1.7 GB. Disk: 24 bytes per row while
    rows are added, three times that while they are ranked, 24 bytes per *repeated* row afterwards.

    A ranker lives in a directory of its own. A finished one is opened as it is; what a killed process left of
    an unfinished one is removed.

    Example:
        >>> ranker = GroupRanker(Path("work/ingest/pairs"))
        >>> ranker.add(keys)            # n x 2, uint64; again and again
        >>> ranker.finish()
        >>> earlier, first = ranker.ranks(0, ranker.rows)
    """

    def __init__(self, directory: Path, held_rows: int = _HELD_ROWS) -> None:
        """Open the ranker in ``directory``, or begin one there.

        directory: made if need be. held_rows: rows in memory, 24 bytes each, before they are written.
        """
        self.directory = directory
        self.held_rows = held_rows
        self.rows = 0
        self._held: list[pa.Table] = []
        self._parts: list[Path] = []
        self._results: NDArray[np.int64] | None = None
        finished = [int(path.stem.split("-")[1]) for path in directory.glob("repeated-*.npy")]
        self.finished = bool(finished)
        if finished:
            self.rows = finished[0]
        else:
            remove_directory(directory)
            directory.mkdir(parents=True)

    def add(self, keys: Keys, rows: Rows | None = None, next_row: int | None = None) -> None:
        """Add the keys of further rows.

        keys: n x 2, uint64.
        rows: their row numbers, rising, none below :attr:`rows`; by default the next n. Rows left out belong
            to no group: they have no earlier row and are their own first.
        next_row: what :attr:`rows` becomes; by default one more than the last row.

        Raises ValueError: wrong shape, type or order, or the ranker is finished.
        """
        if self.finished:
            raise ValueError("the ranker is finished: no rows can be added")
        if keys.ndim != 2 or keys.shape[1] != 2 or keys.dtype != np.uint64:
            raise ValueError(f"keys must be n x 2 of uint64, not {keys.shape} of {keys.dtype}")
        count = len(keys)
        if rows is None:
            rows = np.arange(self.rows, self.rows + count, dtype=np.int64)
        elif len(rows) != count or (count and (rows[0] < self.rows or bool((np.diff(rows) <= 0).any()))):
            raise ValueError("rows must be rising, one a key, and none may have been added before")
        last = int(rows[-1]) + 1 if count else self.rows
        if next_row is not None and next_row < last:
            raise ValueError(f"next_row is {next_row}, row {last - 1} was given")
        # Copies: the caller may use its arrays again, and a slice would keep the whole alive.
        halves = {"high": keys[:, 0].copy(), "low": keys[:, 1].copy()}
        self._held.append(pa.table({**halves, "row": np.array(rows, np.int64)}))
        self.rows = last if next_row is None else next_row
        if sum(table.num_rows for table in self._held) >= self.held_rows:  # few large files, not many small
            self._write()

    def _write(self) -> None:
        if self._held:
            path = self.directory / f"keys-{len(self._parts):06d}.parquet"
            pq.write_table(pa.concat_tables(self._held), path, use_dictionary=False)
            self._held.clear()
            self._parts.append(path)

    def finish(self) -> None:
        """Rank all rows; afterwards :meth:`ranks` can be asked. Does nothing on a finished ranker.

        Raises:
            Interrupted: SIGTERM or Ctrl-C.
            InputError: the disk is full.
        """
        if self.finished:
            return
        self._write()
        with atomic_path(self._ranks) as temporary:
            _rank(self._parts, self.directory / "spilled", temporary)
        self.finished = True
        for part in self._parts:
            part.unlink()

    @property
    def _ranks(self) -> Path:
        return self.directory / f"repeated-{self.rows}.npy"

    def ranks(self, start: int, stop: int) -> tuple[Rows, Rows]:
        """For rows ``start`` to ``stop - 1``: number of earlier rows with the same key, and the first of all.

        A row without an earlier one has 0 and its own number. Cheapest when asked block by block in order.
        Raises ValueError: the ranker is not finished, or has no such rows.
        """
        if not self.finished:
            raise ValueError("finish the ranker first")
        if not 0 <= start <= stop <= self.rows:
            raise ValueError(f"rows {start} to {stop} of {self.rows}")
        if self._results is None:
            self._results = np.load(self._ranks, mmap_mode="r", allow_pickle=False)
        earlier = np.zeros(stop - start, dtype=np.int64)
        first = np.arange(start, stop, dtype=np.int64)
        low, high = np.searchsorted(self._results[0], (start, stop))
        at = self._results[0, low:high] - start
        earlier[at] = self._results[1, low:high]
        first[at] = self._results[2, low:high]
        return earlier, first

    def remove(self) -> None:
        """Delete the ranker's directory."""
        self._results = None
        remove_directory(self.directory)


def _rank(parts: list[Path], spilled: Path, output: Path) -> None:
    """Write the repeated rows, 3 x n of int64: row (rising), number of earlier rows, first row.

    parts: Parquet files of ``high``, ``low`` and ``row``. spilled: directory for what exceeds the memory.
    """
    import pyarrow.dataset as ds  # here, as it imports pandas where that is installed

    schema = pa.schema({"high": pa.uint64(), "low": pa.uint64(), "row": pa.int64()})
    entries = ds.dataset([str(part) for part in parts], schema, format="parquet")
    result = run_query(_REPEATED, {"entries": entries}, spilled, "equal keys cannot be found")
    with pq.ParquetFile(result) as file:
        ranked = np.lib.format.open_memmap(output, "w+", np.int64, (3, file.metadata.num_rows))
        begin = 0
        for batch in file.iter_batches(1 << 20):
            for place, column in enumerate(batch.columns):
                ranked[place, begin : begin + len(batch)] = column
            begin += len(batch)
        ranked.flush()
    remove_directory(spilled)
