"""Sharing the batches of an update among processes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paraforge.translation.training.ranks import Ranks, rank_count


@given(st.integers(1, 64), st.integers(1, 64))
def test_processes_divide_the_batches(batches: int, threads: int) -> None:
    count = rank_count(batches, threads)
    assert batches % count == 0
    assert count <= threads
    assert all(batches % larger for larger in range(count + 1, min(batches, threads) + 1))


@given(st.integers(0, 100), st.integers(0, 10_000), st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_a_batch_has_the_same_seed_whoever_takes_it(seed: int, update: int, count: int) -> None:
    alone = Ranks().batch_seeds(seed, update, 12)
    shared = [0] * 12
    for rank in range(count):
        shared[rank::count] = Ranks(rank, count).batch_seeds(seed, update, 12 // count)
    assert shared == alone
    assert len(set(alone)) == 12


def test_a_process_alone_has_the_totals() -> None:
    assert Ranks().totals(3, True, 0.5) == [3, 1, 0.5]
