"""Finds rows that have nearly the same vector as a better row, over a whole corpus and out of core.

Vectors are rounded to eight bits. The signs of a few projections of a vector are its bucket (Charikar 2002,
section 3), in each of several bands; only rows that share a bucket are compared, exactly. All numbers are
integers, so that the result depends on neither the processor nor the number of threads.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.compiled import compiled
from paraforge.base.shards.groups import run_query
from paraforge.base.shards.lineage import mix

# The share of pairs with exactly the given cosine that have a bucket in common; for higher cosines it is
# larger.
_RECALL: Final = 0.96
_LARGEST: Final = 127
# With more numbers than this, the sum of a projection might not be exact in float32.
MOST_NUMBERS: Final = 4096
# Rows to sort at once.
_PART_ROWS: Final = 1 << 22
_BLOCK: Final = 1 << 16
# A row is compared with only the best rows of a bucket, and only a few near ones are stored.
_MOST_COMPARED: Final = 4096
_MOST_NEAR: Final = 4
# Better rows are decided before worse ones, so it is known whether a better row itself repeats another.
_IN_ORDER: Final = "SELECT worse, better FROM near ORDER BY worse_place, worse, better_place, better"

_NEAR: Final = pa.schema(
    [
        ("worse_place", pa.uint32()),
        ("worse", pa.int64()),
        ("better_place", pa.uint32()),
        ("better", pa.int64()),
    ]
)


def bands_for(cosine: float, rows: int) -> tuple[int, int]:
    """Return the number of bits of a bucket and the number of bands, so that 96% of the pairs with this
    cosine share a bucket.

    Two vectors at an angle a agree in the sign of a projection with probability 1 - a / pi. rows: with more
    rows, buckets are smaller.
    """
    bits = min(max(rows.bit_length() - 3, 8), 24)
    agree = (1 - math.acos(cosine) / math.pi) ** bits
    return bits, math.ceil(math.log(1 - _RECALL) / math.log(max(1 - agree, 1e-9)))


def projections(dimension: int, bits: int, band: int) -> NDArray[np.float32]:
    """Return (dimension, bits) integers from a binomial distribution around 0, which is nearly normal."""
    numbers = np.arange(dimension * bits, dtype=np.uint64) + np.uint64(band << 32)
    drawn = mix(mix(numbers + np.uint64(1))).view(np.uint8).reshape(-1, 8)
    ones = np.unpackbits(drawn, axis=1).sum(1, dtype=np.int64)
    return (ones - 32).reshape(dimension, bits).astype(np.float32)


def to_8_bits(vectors: NDArray[np.floating[Any]]) -> NDArray[np.int8]:
    """Return vectors as 8-bit integers, scaled so that the largest of each is 127; zeros for a vector that is
    not finite."""
    vectors = np.where(np.isfinite(vectors).all(1, keepdims=True), vectors, 0).astype(np.float32)
    largest = np.abs(vectors).max(1, keepdims=True, initial=0)
    return np.rint(vectors / np.where(largest > 0, largest, 1) * np.float32(_LARGEST)).astype(np.int8)


def _places(scores: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return integers that sort like the scores from the best to the worst; NaN is the worst."""
    # The bits of positive numbers sort like the numbers, those of negative ones in reverse.
    bits = (np.where(np.isnan(scores), -np.inf, scores) + 0).astype(np.float32).view(np.uint32)
    sign = np.uint32(1 << 31)
    return ~np.where(bits & sign, ~bits, bits | sign)


class NearVectors:
    """Collects rows, then finds for each row a better one that it repeats.

    Rows are judged from the best to the worst; with equal scores, the earlier row is better. A row repeats a
    kept row if their cosine is high enough, and is kept otherwise. Only the few best rows that are found near
    a row are considered.

    Memory does not grow with the corpus. On disk, a row takes one byte per number of its vector plus 20, and
    each near pair 16 bytes.
    """

    def __init__(self, directory: Path, cosine: float) -> None:
        """directory: new or empty. cosine: least cosine at which a row repeats another, above 0."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.cosine = cosine
        self.rows = 0
        self.dimension = 0

    def add(self, vectors: NDArray[np.int8], scores: NDArray[np.float32]) -> None:
        """Add rows.

        vectors: (n, dimension), see :func:`to_8_bits`; zeros are near nothing. At most 4,096 numbers each.
        scores: score of each row; NaN for none, which is the worst.
        """
        if not len(vectors):
            return
        self.dimension = vectors.shape[1]
        places = _places(scores)
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int32)
        for name, numbers in (("vectors", vectors), ("squares", squares), ("places", places)):
            with (self.directory / name).open("ab") as file:
                file.write(np.ascontiguousarray(numbers).data)
        self.rows += len(vectors)

    def find(self, apply: Callable[[Callable[[int], None], int], Iterator[None]]) -> NDArray[np.int64]:
        """Return for each row the best kept row that it repeats, or -1: n rows, memory-mapped.

        apply: calls a function with 0, 1, ... count - 1, perhaps in threads.
        """
        if not self.rows:
            return np.zeros(0, np.int64)
        vectors = self._map("vectors", np.int8).reshape(-1, self.dimension)
        squares, places = self._map("squares", np.int32), self._map("places", np.uint32)
        bits, bands = bands_for(self.cosine, self.rows)

        def compare(band: int) -> None:
            drawn = projections(self.dimension, bits, band)
            with pq.ParquetWriter(self.directory / f"near-{band}.parquet", _NEAR) as file:
                for entries in _parts(vectors, squares, places, drawn, self.directory / f"band-{band}"):
                    order = np.argsort(entries[:, 0], kind="stable")
                    rows, buckets = entries[order, 1].astype(np.int64), entries[order, 0] >> np.uint64(32)
                    near = near_pairs(vectors, squares, rows, buckets, self.cosine * self.cosine, band == 0)
                    worse, better = near[:, 0], near[:, 1]
                    file.write_table(pa.table([places[worse], worse, places[better], better], schema=_NEAR))

        for _ in apply(compare, bands):
            pass
        return self._settle([self.directory / f"near-{band}.parquet" for band in range(bands)])

    def _map(self, name: str, kind: Any) -> Any:
        return np.memmap(self.directory / name, kind, "r")

    def _settle(self, near: list[Path]) -> NDArray[np.int64]:
        """Decide from the near pairs of all bands, from the best row to the worst."""
        import pyarrow.dataset as ds  # slow to import

        what = "near repeats cannot be found"
        pairs = run_query(_IN_ORDER, {"near": ds.dataset(near)}, self.directory / "sorted", what)
        found = np.memmap(self.directory / "found", np.int64, "w+", shape=(self.rows,))
        found[:] = -1
        with pq.ParquetFile(pairs) as file:
            for batch in file.iter_batches():
                worse, better = (column.to_numpy() for column in batch.columns)
                settle(worse, better, found)
        return np.asarray(found)


def _parts(
    vectors: NDArray[np.int8],
    squares: NDArray[np.int32],
    places: NDArray[np.uint32],
    drawn: NDArray[np.float32],
    path: Path,
) -> Iterator[NDArray[np.uint64]]:
    """Yield the rows in parts that fit in memory, all of a bucket in one part: n x 2, bucket and rank of a
    row as one number, and the row.

    path: of one temporary file for all parts, because a process cannot open a file for each.
    """
    parts = -(-len(vectors) // _PART_ROWS)
    weights = (1 << np.arange(drawn.shape[1])).astype(np.uint64)
    counts = []  # entries of each block, by part
    with path.open("w+b") as file:
        for first in range(0, len(vectors), _BLOCK):
            block = slice(first, first + _BLOCK)
            rows = first + np.flatnonzero(squares[block])
            buckets = (vectors[rows].astype(np.float32) @ drawn > 0) @ weights
            entries = np.stack([buckets << np.uint64(32) | places[rows], rows.astype(np.uint64)], 1)
            part = (mix(buckets) % np.uint64(parts)).astype(np.int64)
            file.write(entries[np.argsort(part, kind="stable")].data)
            counts.append(np.bincount(part, minlength=parts))
        sizes = np.stack(counts) * entries.dtype.itemsize * 2
        begins = np.cumsum(sizes).reshape(sizes.shape) - sizes
        for number in range(parts):
            data = bytearray()
            for begin, size in zip(begins[:, number].tolist(), sizes[:, number].tolist(), strict=True):
                file.seek(begin)
                data += file.read(size)
            yield np.frombuffer(data, np.uint64).reshape(-1, 2)
    path.unlink()


@compiled
def near_pairs(vectors: Any, squares: Any, rows: Any, buckets: Any, square: float, parallel: bool) -> Any:
    """Return pairs of a worse and a better row in one bucket whose squared cosine is at least ``square``, n x
    2.

    rows: bucket by bucket, the best first. buckets: bucket of each row.
    parallel: whether to include pairs with cosine 1, which share a bucket in every band.
    """
    pairs, count, start = np.empty((1024, 2), np.int64), 0, 0
    for place in range(1, len(rows)):
        if buckets[place] != buckets[place - 1]:
            start = place
        row, near = rows[place], 0
        for other in range(start, min(place, start + _MOST_COMPARED)):
            better, dot = rows[other], np.int32(0)
            for k in range(vectors.shape[1]):
                dot += np.int32(vectors[row, k]) * np.int32(vectors[better, k])
            product = np.float64(squares[row]) * np.float64(squares[better])
            if dot > 0 and np.float64(dot) * np.float64(dot) >= square * product:
                near += 1
                if parallel or np.float64(dot) * np.float64(dot) < product:
                    if count == len(pairs):
                        pairs = np.concatenate((pairs, np.empty_like(pairs)))
                    pairs[count] = row, better
                    count += 1
                if near == _MOST_NEAR:
                    break
    return pairs[:count].copy()


@compiled
def settle(worse: Any, better: Any, pairs: Any) -> None:
    """Assign to each worse row the first of its better rows that does not repeat another row."""
    for place in range(len(worse)):
        if pairs[worse[place]] < 0 and pairs[better[place]] < 0:
            pairs[worse[place]] = better[place]
