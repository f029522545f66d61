"""Computes the next items of an iterator in a second thread while the current one is in use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

T = TypeVar("T")
_END = object()


@contextmanager
def prefetched(items: Iterator[T], depth: int = 1) -> Iterator[Iterator[T]]:
    """Give the same items in the same order, up to `depth` of them computed before they are asked for.

    An error in `items` is raised where its item would have come. Leaving the block early stops the thread.
    """
    ready: queue.Queue[object] = queue.Queue(maxsize=depth)
    stop = threading.Event()
    failure: list[BaseException] = []

    def put(item: object) -> None:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def work() -> None:
        # Packing is many small operations: threads of its own would only be in the way.
        torch.set_num_threads(1)
        try:
            for item in items:
                put(item)
                if stop.is_set():
                    return
        except BaseException as error:
            failure.append(error)
        put(_END)

    def results() -> Iterator[T]:
        while (item := ready.get()) is not _END:
            yield item  # type: ignore[misc]
        if failure:
            raise failure[0]

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        yield results()
    finally:
        stop.set()
        thread.join()
