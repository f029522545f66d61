"""Finds the values at some ranks of a whole corpus, digit by digit, in bounded memory.

Rows with equal values are ranked in row order, so a place is a value and a row, and is unique.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.files import remove_directory

Values = npt.NDArray[Any]
_BLOCK = 1 << 20
_BITS = np.uint64(16)
_MASK = np.uint64(0xFFFF)
_SIGN = np.uint64(1 << 63)


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
        found = np.ones(len(values), np.int8)
        rows = self.starts[shard] + np.arange(len(values))
        for value, row in self.places:
            found += (values > value) | ((values == value) & (rows >= row))
        return found


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
    last = starts[-1] - 1
    wanted = list(ranks(starts[-1])) if last >= 0 else []
    places = _places(np.memmap(path, kind, "r"), {min(one, last) for one in wanted}) if wanted else {}
    # After the last row, so no row reaches it.
    places |= {one: (places[last][0], places[last][1] + 1) for one in wanted if one > last}
    remove_directory(directory)
    return Ranked(starts, [places[one] for one in wanted])


def _places(values: Values, ranks: Iterable[int]) -> dict[int, tuple[Any, int]]:
    """Return the value and the row at each rank: its key digit by digit, then its row among equal ones."""
    blocks = range(0, len(values), _BLOCK)
    # For each rank, the leading digits of its key, and its rank among the keys that begin with them.
    found = {one: (0, one) for one in ranks}
    for shift in (48, 32, 16, 0):
        counts = {leading: np.zeros(1 << 16, np.int64) for leading, _ in found.values()}
        for first in blocks:
            keys = _keys(values[first : first + _BLOCK]) >> np.uint64(shift)
            for leading, count in counts.items():
                digits = keys[keys >> _BITS == np.uint64(leading)] & _MASK
                count += np.bincount(digits.astype(np.int64), minlength=len(count))
        for one, (leading, place) in found.items():
            ends = np.cumsum(counts[leading])
            digit = int(np.searchsorted(ends, place, side="right"))
            found[one] = leading << 16 | digit, place - int(ends[digit] - counts[leading][digit])
    places = {}
    for first in blocks:
        block = values[first : first + _BLOCK]
        keys = _keys(block)
        for one, (key, place) in found.items():
            rows = np.flatnonzero(keys == np.uint64(key))
            if 0 <= place < len(rows):
                places[one] = block[rows[place]].item(), first + int(rows[place])
            found[one] = key, place - len(rows)
    return places


def _keys(values: Values) -> npt.NDArray[np.uint64]:
    """Return unsigned numbers in the order of the values."""
    if values.dtype.kind == "f":
        bits = values.astype(np.float64).view(np.uint64)
        return np.where(bits & _SIGN, ~bits, bits | _SIGN)
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    return values.astype(np.int64).view(np.uint64) ^ _SIGN


def tenths(shards: Iterable[Values], directory: Path) -> Ranked:
    """Cut a corpus into deciles (PN 5.4): the row at rank r of n is in decile ``1 + r * 10 // n``, so each
    decile has n / 10 rows, plus or minus one."""
    return rank(shards, lambda n: [-(-part * n // 10) for part in range(1, 10)], directory)
