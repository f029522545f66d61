"""Computing ahead: same items, errors in their place, no thread left behind."""

import threading
from collections.abc import Iterator

import pytest

from paraforge.base.shards.pool import prefetched


def test_same_items_in_order() -> None:
    with prefetched(iter(range(50)), 3) as items:
        assert list(items) == list(range(50))


def test_an_error_comes_after_the_items_before_it() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("here")

    seen = []
    with prefetched(failing()) as items, pytest.raises(ValueError, match="here"):
        for item in items:
            seen.append(item)
    assert seen == [1]


def test_leaving_early_stops_the_thread() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    before = set(threading.enumerate())  # threads of other tests may end meanwhile
    with prefetched(endless(), 2) as items:
        assert next(items) == 1
        (own,) = set(threading.enumerate()) - before
    assert not own.is_alive()
