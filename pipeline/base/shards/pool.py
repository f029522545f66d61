"""Threads or processes that work on a stream of pieces in order and in bounded memory, without a cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import repeat, takewhile
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, TypeVar

from paraforge.base.errors import IncompleteError

if TYPE_CHECKING:
    from paraforge.base.shards.resources import Resources

PieceT = TypeVar("PieceT")
ResultT = TypeVar("ResultT")


def in_window(
    pool: Executor, work: Callable[[PieceT], ResultT], pieces: Iterable[PieceT], ahead: int
) -> Generator[ResultT, None, None]:
    """Yield ``work(piece)`` for each piece in order, while the pool works on the next ``ahead`` pieces. The
    iterator of pieces runs in the caller's thread."""
    window: deque[Future[ResultT]] = deque()
    try:
        for piece in pieces:
            window.append(pool.submit(work, piece))
            if len(window) > ahead:
                yield window.popleft().result()
        while window:
            yield window.popleft().result()
    finally:
        for future in window:
            future.cancel()


def in_processes(
    work: Callable[[PieceT], ResultT],
    pieces: Iterable[PieceT],
    start: Callable[..., None],
    arguments: tuple[Any, ...],
    workers: int,
) -> Iterator[ResultT]:
    """Yield ``work(piece)`` for each piece in order, computed in processes.

    work: importable function; pieces and results must be picklable. pieces: consumed as needed.
    start: called with ``arguments`` in every process before its first piece; importable. workers: processes.

    Raises IncompleteError if a process died.
    """
    # Processes are spawned: Arrow's and torch's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(start, arguments)) as pool:
            yield from in_window(pool, work, pieces, 2 * workers)
    except BrokenProcessPool as error:
        raise IncompleteError(
            "a worker process died, perhaps because memory ran out: use fewer processes (--workers)"
        ) from error


def _begin(start: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    # A terminal sends Ctrl-C to all of its processes. The parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    start(*arguments)


def _end_with_parent() -> None:
    """Exit when the parent has been killed, because nobody else would end this worker."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def in_order(function: Callable[[int], ResultT], count: int, threads: int) -> Iterator[ResultT]:
    """Yield ``function(0)`` ... ``function(count - 1)`` in order, computed by ``threads`` threads.

    Reading, filtering, compressing and hashing a shard run outside the interpreter lock, so threads use all
    cores and nothing is copied between processes. At most twice as many results as threads wait to be
    consumed.
    """
    yield from in_threads(function, range(count), 1 if count <= 1 else threads)


def in_threads(
    work: Callable[[PieceT], ResultT], pieces: Iterable[PieceT], threads: int
) -> Generator[ResultT, None, None]:
    """Yield ``work(piece)`` for each piece in order, computed by threads; one thread is the caller's own. The
    iterator of pieces runs in the caller's thread, at most twice as many pieces ahead as threads."""
    if threads <= 1:
        for piece in pieces:
            yield work(piece)
        return
    with threads_of(ThreadPoolExecutor(threads, "shards")) as pool:
        yield from in_window(pool, work, pieces, 2 * threads - 1)


@contextmanager
def threads_of(pool: ThreadPoolExecutor) -> Iterator[ThreadPoolExecutor]:
    """Provide the threads of a pool to a generator. At the generator's end, wait for the threads, but not if
    its caller abandons it before the end: then drop what has not begun.

    The garbage collector closes an abandoned generator at any moment, perhaps while a thread starts. Until
    Python 3.12, starting and waiting need the same lock, so waiting there would block all threads forever.
    """
    given_up = False
    try:
        yield pool
    except GeneratorExit:
        given_up = True
        raise
    finally:
        pool.shutdown(wait=not given_up, cancel_futures=given_up)


@contextmanager
def prefetch(
    items: Iterator[PieceT], depth: int = 1, start: Callable[[], object] | None = None
) -> Iterator[Iterator[PieceT]]:
    """Provide the same items in the same order, while a second thread computes up to `depth` of them in
    advance.

    An error in `items` is raised where its item would have come. Leaving the block early stops the thread, as
    `threads_of` says.

    start: called in the thread before the first item.
    """
    end: Any = object()
    with threads_of(ThreadPoolExecutor(1, "prefetch", start)) as pool:
        # There is one thread, so the items come in order.
        ahead = in_window(pool, lambda _: next(items, end), repeat(None), depth)
        try:
            yield takewhile(lambda item: item is not end, ahead)
        finally:
            ahead.close()  # start nothing more


def threads_for(resources: Resources, rows: int) -> int:
    """Return the number of threads for a corpus of this many rows: one for a small corpus, where threads do
    not pay off."""
    return 1 if rows <= resources.in_process_rows else resources.worker_count()
