"""Computing ahead: same items, errors in place, no thread left behind."""

import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from paraforge.base.shards.pool import in_threads, prefetch


def ahead_of(work: Callable[[int], int], pieces: Iterable[int], threads: int) -> Iterator[int]:
    """Return what a prefetching generator does."""
    with prefetch(map(work, pieces), threads) as items:
        yield from items


@pytest.mark.parametrize("depth", [1, 3])
def test_prefetch_keeps_order_and_raises_in_place(depth: int) -> None:
    def failing() -> Iterator[int]:
        yield from range(50)
        raise ValueError("here")

    seen = []
    with prefetch(failing(), depth) as items, pytest.raises(ValueError, match="here"):
        for item in items:
            seen.append(item)
    assert seen == [*range(50)]
    with prefetch(iter(range(50)), depth) as items:
        assert [*items] == seen


def test_leaving_early_stops_prefetch_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, waited_for, made = threading.Event(), threading.Event(), []
    shutdown = ThreadPoolExecutor.shutdown

    def shut_down(pool: ThreadPoolExecutor, **options: bool) -> None:
        waited_for.set()
        shutdown(pool, **options)

    def endless() -> Iterator[int]:
        for number in itertools.count():
            made.append(number)
            if number == 1:
                begun.set()
                waited_for.wait()
            yield number

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shut_down)
    before = set(threading.enumerate())  # threads of other tests may end meanwhile
    with prefetch(endless(), 3) as items:
        assert next(items) == 0 and begun.wait(60)
        (own,) = set(threading.enumerate()) - before
    assert not own.is_alive() and made == [0, 1]


@pytest.mark.parametrize("made", [in_threads, ahead_of])
def test_leaving_does_not_wait_for_threads(made: Callable[..., Generator[int, None, None]]) -> None:
    """The garbage collector may close a generator while a thread starts (`threads_of`)."""
    begun, released = threading.Event(), threading.Event()

    def work(number: int) -> int:
        if number:
            begun.set()
            released.wait()
        return number

    before = set(threading.enumerate())
    running = made(work, range(3), 2)
    assert next(running) == 0
    assert begun.wait(60)
    late = threading.Timer(20, released.set)
    late.start()
    running.close()
    assert not released.is_set()
    released.set()
    late.cancel()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("threads", [2, 3])
def test_pending_items_are_at_most_twice_the_threads(threads: int) -> None:
    taken = 0

    def pieces() -> Iterator[int]:
        nonlocal taken
        for number in range(1, 101):
            taken = number
            yield number

    for done, piece in enumerate(in_threads(lambda one: one, pieces(), threads), start=1):
        assert piece == done and taken - done < 2 * threads
    assert taken == 100
