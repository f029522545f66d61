"""Exact order statistics and tenths of a score over a whole corpus, in memory that does not grow with it.

A value of up to 64 bits is mapped to an unsigned integer that sorts the same way; a file with those of the
whole corpus is partitioned.
"""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 20

Keys = npt.NDArray[np.unsignedinteger[Any]]
Result = TypeVar("Result")
# Applies a function to the keys of every shard, in shard order; may be called several times.
Scan = Callable[[Callable[[Keys], Result]], Iterable[Result]]


def ordered_keys(values: npt.NDArray[Any]) -> Keys:
    """Unsigned integers of the same width that sort as ``values`` do.

    values: n finite or infinite numbers of 1, 2, 4 or 8 bytes; -0.0 counts as 0.0, NaN is not allowed.

    Raises TypeError: not an integer or a floating-point type.
    """
    width = np.dtype(f"u{values.dtype.itemsize}")
    sign = width.type(1 << (8 * width.itemsize - 1))
    kind = values.dtype.kind
    if kind == "u":
        return values
    if kind == "i":
        return values.view(width) ^ sign
    if kind == "f":
        bits = (values + values.dtype.type(0)).view(width)  # adding zero turns -0.0 into 0.0
        negative = (bits & sign).astype(bool)
        return np.where(negative, ~bits, bits | sign)
    raise TypeError(f"{values.dtype} has no order that could be cut into tenths")


def value_of_key(key: int, kind: np.dtype[Any]) -> Any:
    """The number of type ``kind`` whose ordered key is ``key``."""
    width = np.dtype(f"u{kind.itemsize}")
    sign = 1 << (8 * kind.itemsize - 1)
    if kind.kind == "i":
        key ^= sign
    elif kind.kind == "f":
        key = key ^ sign if key & sign else ~key & (2 * sign - 1)
    return np.array([key], width).view(kind)[0]


@dataclass(frozen=True)
class OrderStatistic:
    """The key at one rank of the sorted corpus.

    key: the key itself.
    ties_below: how many rows with just this key, in row order, come before the rank.
    ties: how many rows have just this key.
    """

    key: int
    ties_below: int
    ties: int


def order_statistics(
    scan: Scan[Any], ranks: Callable[[int], Sequence[int]], directory: Path | None = None
) -> tuple[int, list[OrderStatistic]]:
    """Find the keys at some ranks of the whole corpus, exactly.

    scan: applies a function to the keys of each shard; called once.
    ranks: given the number of keys, the wanted ranks, each in 0 .. number - 1.
    directory: where the file of keys is until they are found; by default the system's for temporary files.

    Returns the number of keys, and for each rank its order statistic.
    """
    kind: np.dtype[Any] = np.dtype(np.uint8)
    with tempfile.TemporaryFile(dir=directory) as file:
        for keys in scan(lambda keys: keys):
            kind = keys.dtype
            file.write(np.ascontiguousarray(keys).data)
        count = file.tell() // kind.itemsize
        wanted = np.array(ranks(count), dtype=np.int64)
        if np.any((wanted < 0) | (wanted >= count)):
            raise ValueError(f"ranks {wanted.tolist()} of {count} keys")
        if not len(wanted):
            return count, []
        file.flush()
        every = np.memmap(file, kind, "r+")
        every.partition(np.unique(wanted))
        chosen, place = np.unique(every[wanted], return_inverse=True)
        below, ties = np.zeros((2, len(chosen)), np.int64)
        for start in range(0, count, _BLOCK):
            block = np.sort(every[start : start + _BLOCK])
            first, end = (np.searchsorted(block, chosen, side=side) for side in ("left", "right"))
            below += first
            ties += end - first
        del every
    found = zip(chosen[place], wanted - below[place], ties[place], strict=True)
    return count, [OrderStatistic(int(key), int(rest), int(size)) for key, rest, size in found]


@dataclass(frozen=True)
class Parts:
    """The corpus cut into equal parts by one score; the first part is the lowest.

    count: number of ranked rows. parts: number of parts, 10 for deciles.
    cuts: the key at which each part but the first begins.
    ties: for each shard, rows of earlier shards that have the key of a split tie.
    """

    count: int
    parts: int
    cuts: list[OrderStatistic]
    ties: list[dict[int, int]] = field(default_factory=list)

    def assign(self, keys: Keys, shard: int) -> npt.NDArray[np.int8]:
        """Part (1 .. parts) of each of the shard's ranked rows, given in row order."""
        cut_keys = np.array([cut.key for cut in self.cuts], dtype=keys.dtype)
        assigned = (1 + np.searchsorted(cut_keys, keys, side="right")).astype(np.int8)
        for key in _split_keys(self.cuts):
            tied = np.flatnonzero(keys == keys.dtype.type(key))
            earlier = self.ties[shard].get(key, 0)
            place = earlier + np.arange(len(tied))
            limits = np.array([cut.ties_below for cut in self.cuts if cut.key == key])
            below = int(np.searchsorted(cut_keys, keys.dtype.type(key)))
            assigned[tied] = 1 + below + np.searchsorted(limits, place, side="right")
        return assigned


def _split_keys(cuts: Sequence[OrderStatistic]) -> list[int]:
    """Keys whose rows do not all fall on one side of a cut."""
    return sorted({cut.key for cut in cuts if cut.ties_below})


def equal_parts(scan: Scan[Any], parts: int = 10, directory: Path | None = None) -> Parts:
    """Cut the corpus into tenths (PN 5.4): the row of rank r among n is in part ``1 + r * parts // n``.

    Rows with the same score are ranked in row order, so each part has n / parts rows, give or take one.

    scan: applies a function to the keys (see :func:`ordered_keys`) of each shard, without missing ones.
    parts: number of parts, 2 to 127. directory: see :func:`order_statistics`.
    """
    if not 2 <= parts <= 127:
        raise ValueError("parts must be from 2 to 127")

    # The first rank r with r * parts // n >= part; where n < parts, some parts are empty.
    def ranks(n: int) -> list[int]:
        return [min(-(-part * n // parts), n - 1) for part in range(1, parts)] if n else []

    count, cuts = order_statistics(scan, ranks, directory)
    # With fewer rows than parts the last ranks may be beyond the last row: nothing is above such a cut.
    beyond = [-(-part * count // parts) >= count for part in range(1, parts)] if count else []
    cuts = [
        replace(cut, ties_below=cut.ties_below + 1) if over else cut
        for cut, over in zip(cuts, beyond, strict=True)
    ]
    split = _split_keys(cuts)
    ties: list[dict[int, int]] = []
    if split:
        running = dict.fromkeys(split, 0)
        for counts in scan(
            lambda keys: {key: int(np.count_nonzero(keys == keys.dtype.type(key))) for key in split}
        ):
            ties.append(dict(running))
            for key, number in counts.items():
                running[key] += number
    return Parts(count, parts, cuts, ties)
