"""A stream of pieces worked on by other processes: in order, in bounded memory, without a cluster."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

PieceT = TypeVar("PieceT")
ResultT = TypeVar("ResultT")


def in_processes(
    work: Callable[[PieceT], ResultT],
    pieces: Iterable[PieceT],
    start: Callable[..., None],
    arguments: tuple[Any, ...],
    workers: int,
) -> Iterator[ResultT]:
    """What ``work`` gives for each piece, in order.

    Args:
        work: importable, as pieces and results are picklable.
        pieces: taken as they are needed.
        start: called with ``arguments`` in every process before its first piece; importable.
        workers: processes.
    """
    # Processes are spawned: Arrow's and torch's threads do not survive a fork.
    with ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=start, initargs=arguments
    ) as pool:
        window: deque[Future[ResultT]] = deque()
        try:
            for piece in pieces:
                window.append(pool.submit(work, piece))
                if len(window) > 2 * workers:
                    yield window.popleft().result()
            while window:
                yield window.popleft().result()
        finally:
            for future in window:
                future.cancel()
