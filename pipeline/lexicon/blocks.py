"""Blocks of words: the rows of the counts that one job makes, cut so that they fit a job's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paraforge.lexicon.pair_table import COUNTERS

COUNTER_BYTES = 4
# Enough blocks for a cluster to share the work evenly, few enough that reading all pairs for each costs
# little.
SHARE_OF_WORK = 12
# The counters of a dense block are numbered with 32 bits.
LARGEST_BLOCK_BYTES = 2**32 * COUNTER_BYTES


@dataclass(frozen=True)
class Block:
    """Rows ``first`` to ``last - 1``; ``increments`` is how much there is to count, exactly."""

    first: int
    last: int
    dense: bool
    increments: int

    @property
    def name(self) -> str:
        """A name that is different for blocks of different plans."""
        return f"{self.first:08d}-{self.last:08d}-{'dense' if self.dense else 'sparse'}"


def plan_blocks(row_increments: npt.NDArray[np.int64], memory: int) -> list[Block]:
    """Cut the rows into blocks.

    Frequent words get dense rows, rare ones sparse rows; the border is where memory in all is least.

    row_increments: increments of each row, words by frequency, see
        :func:`~paraforge.lexicon.pair_table.count_row_increments`.
    memory: bytes that the counters or entries of one block may take.
    """
    words = len(row_increments)
    columns = np.arange(words, dtype=np.int64)
    dense_bytes = COUNTERS * COUNTER_BYTES * columns
    sparse_bytes = COUNTER_BYTES * row_increments
    # bytes in all if rows before the border are dense and the others sparse
    total = np.zeros(words + 1, np.int64)
    total[1:] = np.cumsum(dense_bytes - sparse_bytes)
    border = int(np.argmin(total))
    share = max(1, int(row_increments.sum()) // SHARE_OF_WORK)
    memory = min(memory, LARGEST_BLOCK_BYTES)
    blocks: list[Block] = []
    for dense, first, last, cost in ((True, 0, border, dense_bytes), (False, border, words, sparse_bytes)):
        for start, end in _cut(cost[first:last], row_increments[first:last], memory, share):
            increments = int(row_increments[first + start : first + end].sum())
            if increments:
                blocks.append(Block(first + start, first + end, dense, increments))
    return blocks


def _cut(
    cost: npt.NDArray[np.int64], increments: npt.NDArray[np.int64], memory: int, share: int
) -> Sequence[tuple[int, int]]:
    """Ranges of rows whose bytes are at most ``memory`` and whose increments are about ``share``."""
    bytes_before = np.concatenate([[0], np.cumsum(cost)])
    increments_before = np.concatenate([[0], np.cumsum(increments)])
    ranges = []
    start = 0
    while start < len(cost):
        by_memory = int(np.searchsorted(bytes_before, bytes_before[start] + memory, side="right")) - 1
        by_work = int(np.searchsorted(increments_before, increments_before[start] + share, side="left"))
        end = min(max(start + 1, min(by_memory, by_work)), len(cost))
        ranges.append((start, end))
        start = end
    return ranges
