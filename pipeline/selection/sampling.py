"""Sampling without replacement that depends on the seed and on each pair's lineage, and on nothing else.

Every pair gets a pseudo-random 64-bit key from (seed, source, line, rank); the sample is the pairs with the
smallest keys. So neither shard sizes, nor their order, nor the number of workers can change it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.selection.quantiles import OrderStatistic, Scan, order_statistics

LINEAGE = ("source", "line", "rank")


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele et al. 2014): a bijection that scatters neighbouring numbers."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _hash_name(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def sampling_keys(lineage: pa.Table, seed: int) -> npt.NDArray[np.uint64]:
    """Pseudo-random keys of n rows.

    Args:
        lineage: columns ``source`` (string), ``line`` (int64) and, for n-best rows, ``rank`` (int8).
        seed: any integer; another seed gives an independent order.

    Returns:
        n keys, uniform over 64 bits.
    """
    if not lineage.num_rows:
        return np.zeros(0, np.uint64)
    sources = lineage.column("source").combine_chunks().dictionary_encode()
    if isinstance(sources, pa.ChunkedArray):
        sources = sources.combine_chunks()
    hashes = [_hash_name(seed, name) for name in sources.dictionary.to_pylist()]
    names = np.array([*hashes, 0], np.uint64)
    codes = pc.fill_null(sources.indices, len(names) - 1).to_numpy(zero_copy_only=False)
    keys = _mix(names[codes] + _integers(lineage.column("line")))
    if "rank" in lineage.column_names:
        keys = _mix(keys + _integers(lineage.column("rank")))
    return keys


def _integers(column: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy().view(np.uint64)


@dataclass(frozen=True)
class Sample:
    """Which rows are drawn: those whose key is below a threshold, and some of those that equal it.

    Attributes:
        population: number of rows drawn from.
        size: number of rows drawn.
        threshold: None where every row is drawn.
        ties: for each shard, rows of earlier shards whose key equals the threshold; empty where all such
            rows are drawn.
    """

    population: int
    size: int
    threshold: OrderStatistic | None
    ties: list[int] = field(default_factory=list)

    def draws(self, keys: npt.NDArray[np.uint64], shard: int) -> npt.NDArray[np.bool_]:
        """Whether each of the shard's rows, given in row order, is in the sample."""
        if self.threshold is None:
            return np.ones(len(keys), bool)
        threshold = np.uint64(self.threshold.key)
        drawn = keys < threshold
        tied = np.flatnonzero(keys == threshold)
        if not self.ties:  # the usual case: every row with the threshold's key is drawn
            drawn[tied] = True
            return drawn
        drawn[tied] = self.ties[shard] + np.arange(len(tied)) <= self.threshold.ties_below
        return drawn


def draw_sample(scan: Scan[Any], size: int) -> Sample:
    """Choose ``size`` rows without replacement; all of them where there are no more.

    Args:
        scan: applies a function to the keys (see :func:`sampling_keys`) of each shard's candidate rows.
        size: how many, at least 1.
    """
    if size < 1:
        raise ValueError("a sample has at least one pair")
    count, statistics = order_statistics(scan, lambda n: [size - 1] if n > size else [])
    if not statistics:
        return Sample(count, count, None)
    if statistics[0].ties_below + 1 == statistics[0].ties:
        return Sample(count, size, statistics[0])
    threshold = np.uint64(statistics[0].key)
    ties = [0]
    for equal in scan(lambda keys: int(np.count_nonzero(keys == threshold))):
        ties.append(ties[-1] + equal)
    return Sample(count, size, statistics[0], ties[:-1])
