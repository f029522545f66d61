"""One function over all shards on a few threads, results in shard order, memory bounded.

Reading, filtering, compressing and hashing a shard run outside the interpreter lock, so threads use all
cores and nothing is copied between processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from paraforge.interrupts import check_interrupt
from paraforge.shards.resources import Resources

Result = TypeVar("Result")


def thread_count(resources: Resources, rows: int) -> int:
    """Threads for a corpus of so many rows: one for a small corpus, which is done before threads pay."""
    return 1 if rows <= resources.in_process_rows else resources.worker_count()


def map_shards(function: Callable[[int], Result], count: int, workers: int) -> Iterator[Result]:
    """Yield ``function(0)`` ... ``function(count - 1)`` in order, computed by ``workers`` threads.

    No more than twice as many results as workers wait to be taken.

    Raises:
        Interrupted: SIGTERM or Ctrl-C; shards in hand are finished first.
    """
    if workers <= 1 or count <= 1:
        for index in range(count):
            check_interrupt()
            yield function(index)
        return
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="shard") as pool:
        waiting: deque[Future[Result]] = deque()
        started = 0
        try:
            while started < count or waiting:
                check_interrupt()
                while started < count and len(waiting) < 2 * workers:
                    waiting.append(pool.submit(function, started))
                    started += 1
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
