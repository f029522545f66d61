"""Finds the values at some ranks of a whole corpus, in files rather than in memory.

Rows with equal values are ranked in row order, so a place is a value and a row, and is unique.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.files import remove_directory

Values = npt.NDArray[Any]
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Ranked:
    """A corpus cut at some ranks.

    starts: for each shard, the number of rows in earlier shards, then their total.
    places: the requested places, ascending: a value and, among equal values, the number of a row.
    """

    starts: list[int]
    places: list[tuple[Any, int]]

    def parts(self, values: Values, shard: int) -> npt.NDArray[np.int8]:
        """Return the part of each of a shard's rows, from 1: one more than the number of places that it
        reaches."""
        parts = np.ones(len(values), np.int8)
        rows = self.starts[shard] + np.arange(len(values))
        for value, row in self.places:
            parts += (values > value) | ((values == value) & (rows >= row))
        return parts


def rank(shards: Iterable[Values], ranks: Callable[[int], Sequence[int]], directory: Path) -> Ranked:
    """Find the places at some ranks of a corpus.

    shards: the values of each shard's rows, all of one type, without NaN; each is read once.
    ranks: function from the number of rows to ranks, from 0. A rank beyond the last row is a place that no
        row reaches.
    directory: a new one for the values; removed at the end.
    """
    directory.mkdir(parents=True)
    path, starts, kind = directory / "values", [0], np.dtype(np.float32)
    with path.open("wb") as file:
        for values in shards:
            # Adding zero turns -0.0 into 0.0.
            file.write((values + values.dtype.type(0)).data)
            starts.append(starts[-1] + len(values))
            kind = values.dtype
    last, places = starts[-1] - 1, list[tuple[Any, int]]()
    if last >= 0:
        rows = np.memmap(path, kind, "r")
        shutil.copyfile(path, directory / "ordered")
        ordered = np.memmap(directory / "ordered", kind, "r+")
        positions = ranks(starts[-1])
        ordered.partition([min(position, last) for position in positions])
        # A rank beyond the last row is a place after this row.
        places = [_place(rows, ordered, min(position, last), position > last) for position in positions]
    remove_directory(directory)
    return Ranked(starts, places)


def _place(rows: Values, ordered: Values, rank: int, after: bool) -> tuple[Any, int]:
    """Return the value at a rank, and the row that has it.

    ordered: the values, with the one at this rank in its place. after: return the row after that one.
    """
    value = ordered[rank].item()
    # All values before this place are at most as large, so the equal ones are those of earlier rows.
    earlier = sum(map(len, _equal(ordered[:rank], value)))
    for equal in _equal(rows, value):
        if earlier < len(equal):
            return value, int(equal[earlier]) + after
        earlier -= len(equal)
    raise ValueError(f"no row has the value {value} at rank {rank}")


def _equal(values: Values, value: Any) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the rows that have the value, block by block."""
    for first in range(0, len(values), _BLOCK):
        yield first + np.flatnonzero(values[first : first + _BLOCK] == value)


def tenths(shards: Iterable[Values], directory: Path) -> Ranked:
    """Cut a corpus into deciles (PN 5.4): the row at rank r of n is in decile ``1 + r * 10 // n``, so each
    decile has n / 10 rows, plus or minus one."""
    return rank(shards, lambda n: [-(-part * n // 10) for part in range(1, 10)], directory)
