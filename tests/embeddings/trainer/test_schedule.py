"""Mega-batches: every pair of an epoch exactly once, M as annealed, the same from any point on."""

from contextlib import AbstractContextManager
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paraforge.embeddings.trainer import schedule as module
from paraforge.embeddings.trainer.schedule import Schedule, spans


def windows(window: int, block: int, whole: int = 1) -> AbstractContextManager[object]:
    return patch.multiple(module, WHOLE=whole, WINDOW=window, BLOCK=block, MEGA_BATCHES=0)


@given(st.integers(2, 300), st.integers(1, 20), st.integers(1, 6), st.integers(0, 4))
def test_an_epoch_uses_every_pair_once(pairs: int, batch_size: int, mega_batch: int, anneal: int) -> None:
    if batch_size * (1 if anneal else mega_batch) < 2:
        return
    schedule = Schedule(pairs, batch_size, mega_batch, anneal, seed=3)
    assert sorted(schedule.order(0)[:]) == list(range(pairs))
    first = updates = 0
    while first < pairs:
        size = schedule.end(first, updates) - first
        assert 2 <= size <= batch_size * schedule.mini_batches_of(updates) + 1
        inner = spans(size, batch_size)
        assert [k for begin, end in inner for k in range(begin, end)] == list(range(size))
        first, updates = first + size, updates + len(inner)
    assert first == pairs


def test_annealing_raises_m_by_one() -> None:
    schedule = Schedule(10_000, 10, 5, 3, seed=1)
    assert [schedule.mini_batches_of(updates) for updates in range(0, 18, 3)] == [1, 2, 3, 4, 5, 5]
    assert Schedule(10, 2, 5, 0, seed=1).mini_batches_of(0) == 5


def test_epochs_and_seeds_differ() -> None:
    schedule = Schedule(100, 10, 5, 0, seed=1)
    assert schedule.order(0)[:].tolist() == Schedule(100, 7, 2, 1, seed=1).order(0)[:].tolist()
    assert schedule.order(0)[:].tolist() != schedule.order(1)[:].tolist()
    assert schedule.order(0)[:].tolist() != Schedule(100, 10, 5, 0, seed=2).order(0)[:].tolist()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=80), st.integers(2, 9), st.integers(0, 5))
def test_mini_batches_of_one_source(sources: list[int], batch_size: int, epoch: int) -> None:
    numbers = np.array(sources, dtype=np.int32)
    schedule = Schedule(len(sources), batch_size, 1, 0, seed=3, sources=numbers)
    order = schedule.order(epoch)[:]
    assert sorted(order) == list(range(len(sources)))
    whole = sum(sources.count(source) // batch_size for source in set(sources))
    for number in range(whole):
        assert len(set(numbers[order[number * batch_size : (number + 1) * batch_size]])) == 1
    left = numbers[order[whole * batch_size :]].tolist()
    assert all(left.count(source) < batch_size for source in left)


def test_mini_batches_of_one_source_are_shuffled() -> None:
    numbers = np.repeat(np.arange(4, dtype=np.int32), 50)
    schedule = Schedule(200, 5, 1, 0, seed=1, sources=numbers)
    first, second = (numbers[schedule.order(epoch)[:]][::5].tolist() for epoch in (0, 1))
    assert first != second
    assert sorted(first) == sorted(second) == [k for k in range(4) for _ in range(10)]
    assert first != sorted(first)
    assert schedule.order(0)[:5].tolist() != sorted(schedule.order(0)[:5].tolist())


@given(st.integers(2, 300), st.integers(1, 9), st.integers(1, 80), st.integers(1, 50), st.integers(0, 3))
def test_windows_hold_shuffled_blocks(pairs: int, batch: int, window: int, block: int, epoch: int) -> None:
    with windows(window, block):
        schedule = Schedule(pairs, batch, 3, 0, seed=3)
        order = schedule.order(epoch)
        every = order[:]
        # From any place on, as a run that resumes sees it.
        for first in range(0, pairs, order.window):
            middle, last = min(first + batch, pairs - 1), first + order.window + 1
            assert schedule.order(epoch)[middle:last].tolist() == every[middle:last].tolist()
    assert sorted(every) == list(range(pairs))
    assert order.window % batch == 0
    # Slow and obvious: a window's pairs are those that the order of the blocks brings there.
    numbers = np.random.default_rng([3, 0, epoch]).permutation(-(-pairs // block))
    unmixed = [k for b in numbers.tolist() for k in range(b * block, min((b + 1) * block, pairs))]
    for first in range(0, pairs, order.window):
        last = first + order.window
        assert sorted(every[first:last]) == sorted(unmixed[first:last])


def test_a_window_is_for_more_pairs_than_are_shuffled_as_a_whole() -> None:
    plain = np.random.default_rng([1, 0, 2]).permutation(100)
    schedule = Schedule(100, 10, 5, 0, seed=1)
    with windows(20, 4, whole=100):
        assert schedule.order(2)[:].tolist() == plain.tolist()
    with windows(20, 4, whole=99):
        windowed = schedule.order(2)[:]
    assert windowed.tolist() != plain.tolist()
    assert {len(set(windowed[first : first + 20] // 4)) for first in range(0, 100, 20)} == {5}


@given(st.lists(st.integers(0, 2), min_size=30, max_size=80), st.integers(2, 4))
def test_mini_batches_of_one_source_in_each_window(sources: list[int], batch: int) -> None:
    numbers = np.array(sources, dtype=np.int32)
    with windows(16, 5):
        order = Schedule(len(sources), batch, 1, 0, 3, numbers).order(0)
        every = order[:]
    assert sorted(every) == list(range(len(sources)))
    for first in range(0, len(sources), order.window):
        here = numbers[every[first : first + order.window]]
        whole = int((np.bincount(here) // batch).sum())
        assert all(len(set(here[k * batch : (k + 1) * batch].tolist())) == 1 for k in range(whole))


def test_a_window_holds_enough_mega_batches() -> None:
    """Of so few that neighbours in the files meet as negatives, a training collapsed."""
    assert Schedule(10**8, 100, 40, 0, seed=1).order(0).window == (1 << 20) // 100 * 100
    assert Schedule(10**8, 1024, 100, 0, seed=1).order(0).window == 256 * 100 * 1024
