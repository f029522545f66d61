"""The identity of a row (its lineage), pseudo-random numbers that depend only on it, and 128-bit keys of
texts, which are the same on every platform and in every version.

The rows with the smallest numbers are a sample that depends on neither shards, their order nor workers.
"""

import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

LINEAGE = ("source", "line", "rank")
# Never a byte of UTF-8, so ("a", "bc") and ("ab", "c") have different keys.
_SEPARATOR = b"\xff"
_MOST_PARTS = 64


def mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finalizer of SplitMix64 (Steele et al. 2014), a bijection that scatters neighboring
    numbers."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _hash_name(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def mixed(keys: npt.NDArray[np.uint64], name: str) -> npt.NDArray[np.uint64]:
    """Return other pseudo-random numbers for the same n keys, independent for each name."""
    return mix(keys + np.uint64(_hash_name(0, name)))


def sampling_keys(lineage: pa.Table, seed: int) -> npt.NDArray[np.uint64]:
    """Return pseudo-random keys of n rows.

    lineage: a table with columns ``source`` (string), ``line`` (int64) and, for n-best rows, ``rank`` (int8).
    seed: any integer; another seed gives an independent order.

    Returns n keys, uniform over 64 bits.
    """
    if not lineage.num_rows:
        return np.zeros(0, np.uint64)
    sources = lineage.column("source").combine_chunks().dictionary_encode()
    hashes = [_hash_name(seed, name) for name in sources.dictionary.to_pylist()]
    names = np.array([*hashes, 0], np.uint64)
    codes = pc.fill_null(sources.indices, len(names) - 1).to_numpy(zero_copy_only=False)
    keys = mix(names[codes] + _to_integers(lineage.column("line")))
    if "rank" in lineage.column_names:
        keys = mix(keys + _to_integers(lineage.column("rank")))
    return keys


class Smallest:
    """Collects the rows with the smallest keys from a stream of tables: a random sample in bounded memory.

    Memory holds at most twice ``size`` rows and one more table. limit: keys above it are ignored.
    """

    def __init__(self, size: int) -> None:
        """size: rows to keep, at least 1; rows whose key equals the last one are kept as well."""
        self.size = size
        self._parts: list[pa.Table] = []
        self.limit = int(np.iinfo(np.uint64).max)

    def add(self, rows: pa.Table) -> None:
        """Add rows, which have a column ``key`` (uint64)."""
        candidates = rows.filter(pc.less_equal(rows["key"], pa.scalar(self.limit, pa.uint64())))
        if candidates.num_rows or not self._parts:
            self._parts.append(candidates)
        # A long corpus adds few rows at a time, and a small table takes much more memory than its rows.
        if len(self._parts) > _MOST_PARTS or sum(part.num_rows for part in self._parts) > 2 * self.size:
            self._parts = [self.rows().combine_chunks()]

    def rows(self) -> pa.Table:
        """Return the rows with the smallest keys so far, in the order of arrival."""
        rows = pa.concat_tables(self._parts)
        if rows.num_rows > self.size:
            keys = rows["key"].to_numpy()
            self.limit = int(np.partition(keys, self.size - 1)[self.size - 1])
            rows = rows.filter(pa.array(keys <= np.uint64(self.limit)))
        return rows


def _to_integers(column: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy().view(np.uint64)


def text_keys(*columns: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return the key of each row of one or more string columns: XXH3-128 of the UTF-8 bytes, joined by a byte
    0xFF.

    columns: string arrays of the same length n, without nulls.

    Returns n x 2, uint64: high and low half. Raises ValueError if there is a null.
    """
    flat = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    if any(column.null_count for column in flat):
        raise ValueError("a null has no key")
    binary = [column.cast(pa.binary()) for column in flat]
    joined = binary[0] if len(binary) == 1 else pc.binary_join_element_wise(*binary, _SEPARATOR)
    digests = b"".join(map(xxhash.xxh3_128_digest, joined.to_pylist()))
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def binary_keys(keys: NDArray[np.uint64]) -> pa.Array:
    """Return the keys of :func:`text_keys`, n x 2, as an array of 16 bytes each, which sorts as they do."""
    data = pa.py_buffer(keys.astype(">u8").tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(keys), [None, data])
