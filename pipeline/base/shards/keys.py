"""128-bit keys of texts: equal keys mean equal texts, on every platform and in every version."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

# Never a byte of UTF-8, so ("a", "bc") and ("ab", "c") have different keys.
_SEPARATOR = b"\xff"


def text_keys(*columns: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    """Key of each row of one or more string columns: XXH3-128 of the UTF-8 bytes, joined by a byte 0xFF.

    columns: string arrays of the same length n, without nulls.

    Returns n x 2, uint64: high and low half. Raises ValueError: no column, or a null.
    """
    if not columns:
        raise ValueError("at least one column")
    flat = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    if any(column.null_count for column in flat):
        raise ValueError("a null has no key")
    binary = [column.cast(pa.binary()) for column in flat]
    joined = binary[0] if len(binary) == 1 else pc.binary_join_element_wise(*binary, _SEPARATOR)
    digests = b"".join(map(xxhash.xxh3_128_digest, joined.to_pylist()))
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)
