"""Finds, out of core, which rows of a corpus have the same key: duplicates, and who came first."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path, read_json, remove_directory, write_json
from paraforge.base.interrupts import check_interrupt

logger = logging.getLogger(__name__)

PARTITIONS = 256
_ROWS_A_PARTITION = 250_000
_FORMAT = 1
_STATE = "state.json"
# One entry of a partition file: the two halves of the key and the row that has it.
_ENTRY = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<i8")])
# Odd numbers of splitmix64's finaliser: keys that are no hashes are spread over the partitions all the same.
_MIX_HIGH = np.uint64(0xBF58476D1CE4E5B9)
_MIX_LOW = np.uint64(0x94D049BB133111EB)

Keys = NDArray[np.uint64]
Rows = NDArray[np.int64]


class GroupRanker:
    """For each row of a stream of 128-bit keys: how many earlier rows have its key, and which is the first.

    The keys are spread over 256 partition files; each partition is then ranked by itself. Memory grows
    with the *distinct* keys of one partition (32 bytes each: 125 MB for 10^9 distinct keys in all) and with
    ``block_rows``, not with the rows, however often one key is repeated. Disk: 24 bytes per row while rows
    are added, 24 bytes a *repeated* row afterwards.

    A ranker lives in a directory and survives its process: rows up to the last :meth:`commit` need not be
    added again (:attr:`rows` says how many there are), ranked partitions are not ranked again, and a
    finished ranker is opened as it is. Give each input a directory of its own: nothing here can know
    that the keys of another run differ.

    Example:
        >>> ranker = GroupRanker(Path("work/ingest/pairs"))
        >>> ranker.add(keys)            # n x 2, uint64; again and again
        >>> ranker.finish()
        >>> earlier, first = ranker.ranks(0, ranker.rows)
    """

    def __init__(
        self, directory: Path, block_rows: int = 2_000_000, expected_rows: int | None = None
    ) -> None:
        """Open the ranker in ``directory``, or begin one there.

        directory: made if need be; what a killed process left there uncommitted is dropped.
        block_rows: rows ranked at a time, about 150 bytes of memory each.
        expected_rows: where it is known that there will be few, fewer partitions are made. A ranker that is
            there already keeps its partitions.
        """
        if block_rows < 1:
            raise ValueError("block_rows must be at least 1")
        self.directory = directory
        self.block_rows = block_rows
        self.rows = 0
        self.finished = False
        wanted = PARTITIONS if expected_rows is None else expected_rows // _ROWS_A_PARTITION
        self._sizes = [0] * min(PARTITIONS, 1 << max(0, wanted - 1).bit_length())
        self._pending_bytes = 0
        self._results: list[NDArray[np.int64]] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        if not self._restore():
            remove_directory(directory)
            directory.mkdir()
        self._pending: list[list[bytes]] = [[] for _ in self._sizes]

    def _restore(self) -> bool:
        """Take up what an earlier process committed; False where there is nothing, or something damaged."""
        path = self.directory / _STATE
        if not path.exists():
            return False
        try:
            state = read_json(path)
            rows, finished = int(state["rows"]), bool(state["finished"])
            sizes = [int(size) for size in state["sizes"]]
            if state["format"] != _FORMAT:
                return False
            for partition, size in enumerate(sizes):
                if self._result_path(partition).exists():
                    continue  # ranked before the process died, and its entries may be gone
                if finished:
                    if size:
                        return False
                    continue
                file = self._partition_path(partition)
                found = file.stat().st_size if file.exists() else 0
                if found < size:
                    logger.warning("%s has %d bytes, %d were committed: ranking anew", file, found, size)
                    return False
                if found > size:
                    with file.open("r+b") as handle:
                        handle.truncate(size)
        except (InputError, KeyError, TypeError, ValueError) as error:
            logger.warning("%s is damaged (%s): ranking anew", path, error)
            return False
        self.rows, self.finished, self._sizes = rows, finished, sizes
        return True

    def _partition_path(self, partition: int) -> Path:
        return self.directory / f"keys-{partition:03d}.bin"

    def _result_path(self, partition: int) -> Path:
        return self.directory / f"ranks-{partition:03d}.npy"

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
        entries = np.empty(count, dtype=_ENTRY)
        entries["high"], entries["low"], entries["row"] = keys[:, 0], keys[:, 1], rows
        mixed = (keys[:, 0] * _MIX_HIGH ^ keys[:, 1] * _MIX_LOW) >> np.uint64(56)
        partition = (mixed % np.uint64(len(self._sizes))).astype(np.uint8)
        order = np.argsort(partition, kind="stable")  # stable: rows stay in order within a partition
        entries = entries[order]
        ends = np.cumsum(np.bincount(partition, minlength=len(self._sizes)))
        begin = 0
        for index, end in enumerate(ends.tolist()):
            if end > begin:
                self._pending[index].append(entries[begin:end].tobytes())
            begin = end
        self._pending_bytes += entries.nbytes
        if self._pending_bytes > 64_000_000:  # few large appends, not many small ones
            self._flush()
        self.rows = last if next_row is None else next_row

    def _flush(self) -> None:
        for partition, blocks in enumerate(self._pending):
            if blocks:
                with self._partition_path(partition).open("ab") as file:
                    file.writelines(blocks)
                self._sizes[partition] += sum(map(len, blocks))
                blocks.clear()
        self._pending_bytes = 0

    def commit(self) -> None:
        """Make what was added so far survive the process."""
        self._flush()
        self._write_state()

    def _write_state(self) -> None:
        state = {"format": _FORMAT, "rows": self.rows, "finished": self.finished, "sizes": self._sizes}
        write_json(self.directory / _STATE, state)

    def finish(self) -> None:
        """Rank all rows; afterwards :meth:`ranks` can be asked. Does nothing on a finished ranker. Raises
        Interrupted: SIGTERM or Ctrl-C; partitions ranked so far are kept."""
        if self.finished:
            return
        self.commit()
        for partition, size in enumerate(self._sizes):
            check_interrupt()
            if size and not self._result_path(partition).exists():
                ranked = self._rank(self._partition_path(partition), size)
                with atomic_path(self._result_path(partition)) as temporary, temporary.open("wb") as file:
                    np.save(file, ranked, allow_pickle=False)
            self._partition_path(partition).unlink(missing_ok=True)
        self.finished = True
        self._write_state()

    def _rank(self, path: Path, size: int) -> NDArray[np.int64]:
        """The repeated rows of a partition: 3 x n of row (rising), number of earlier rows, first row."""
        known = _Known()
        found: list[NDArray[np.int64]] = [np.empty((3, 0), dtype=np.int64)]
        total = size // _ENTRY.itemsize
        for begin in range(0, total, self.block_rows):
            count = min(self.block_rows, total - begin)
            block = np.fromfile(path, dtype=_ENTRY, count=count, offset=begin * _ENTRY.itemsize)
            found.append(known.rank(block, keep=begin + count < total))
        return np.concatenate(found, axis=1)

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
            paths = [self._result_path(index) for index, size in enumerate(self._sizes) if size]
            mapped = [np.load(path, mmap_mode="r", allow_pickle=False) for path in paths]
            self._results = [result for result in mapped if result.shape[1]]
        earlier = np.zeros(stop - start, dtype=np.int64)
        first = np.arange(start, stop, dtype=np.int64)
        for result in self._results:
            low, high = np.searchsorted(result[0], (start, stop))
            if high > low:
                at = result[0, low:high] - start
                earlier[at] = result[1, low:high]
                first[at] = result[2, low:high]
        return earlier, first

    def remove(self) -> None:
        """Delete the ranker's directory."""
        self._results = None
        remove_directory(self.directory)


class _Known:
    """The distinct keys of the blocks seen so far: how often each was seen, and first where."""

    def __init__(self) -> None:
        self.high = np.empty(0, dtype=np.uint64)
        self.low = np.empty(0, dtype=np.uint64)
        self.seen = np.empty(0, dtype=np.int64)
        self.first = np.empty(0, dtype=np.int64)

    def rank(self, block: NDArray[np.void], keep: bool) -> NDArray[np.int64]:
        """The repeated rows of the block, 3 x n as in ``_rank``; with ``keep`` its keys are remembered."""
        known = len(self.high)
        high = np.concatenate((self.high, block["high"]))
        low = np.concatenate((self.low, block["low"]))
        first = np.concatenate((self.first, block["row"]))
        # A known key stands for all its rows so far: it comes before the block's rows and counts as many.
        order = _stable_order(high, low)
        high, low, first = high[order], low[order], first[order]
        begins = np.empty(len(order), dtype=bool)
        begins[:1] = True
        begins[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        starts = np.flatnonzero(begins)
        sizes = np.diff(starts, append=len(order))
        group_first = first[starts]
        # Position in the group, plus what a known key at its head counts beyond itself.
        extra = np.zeros(len(starts), dtype=np.int64)
        head_is_known = order[starts] < known
        extra[head_is_known] = self.seen[order[starts[head_is_known]]] - 1
        repeated = np.flatnonzero(~begins)  # a known key is always the head of its group
        group = np.cumsum(begins)[repeated] - 1
        rows = first[repeated]
        earlier = repeated - starts[group] + extra[group]
        by_row = np.argsort(rows, kind="stable")
        ranked = np.stack((rows, earlier, group_first[group]))[:, by_row]
        if keep:
            self.high, self.low, self.first = high[starts], low[starts], group_first
            self.seen = sizes + extra
        return ranked


def _stable_order(high: Keys, low: Keys) -> NDArray[np.intp]:
    """Stable sorting order by (high, low)."""
    order = np.argsort(high, kind="stable")
    sorted_high, sorted_low = high[order], low[order]
    # Hashes that agree in the high half agree in the low half too; only other keys need the second sort.
    if bool(((sorted_high[1:] == sorted_high[:-1]) & (sorted_low[1:] != sorted_low[:-1])).any()):
        order = np.lexsort((low, high))
    return order
