"""A sample is the rows with the smallest keys, however the stream is cut, and memory holds few of them."""

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from paraforge.base.shards.lineage import Smallest


@example([1] * 6, 1, 1)  # equal keys after the first were sorted out
@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=60),
    st.integers(1, 20),
    st.integers(1, 30),
)
def test_the_smallest_keys_in_the_order_of_the_stream(keys: list[int], size: int, per_table: int) -> None:
    drawn = Smallest(size)
    table = pa.table({"key": pa.array(keys, pa.uint64()), "row": np.arange(len(keys))})
    drawn.add(table.slice(0, 0))
    for first in range(0, len(keys), per_table):
        drawn.add(table.slice(first, per_table))
    last = sorted(keys)[:size][-1] if keys else 0
    assert drawn.rows()["row"].to_pylist() == [row for row, key in enumerate(keys) if key <= last]


def test_memory_holds_twice_the_sample_in_few_pieces() -> None:
    drawn = Smallest(100)
    keys = np.random.default_rng(1).integers(0, 2**63, 20_000).astype(np.uint64)
    for first in range(0, len(keys), 50):
        drawn.add(pa.table({"key": keys[first : first + 50]}))
        assert sum(part.num_rows for part in drawn._parts) <= 200
        assert sum(part["key"].num_chunks for part in drawn._parts) <= 65
    assert sorted(drawn.rows()["key"].to_pylist()) == sorted(keys.tolist())[:100]
