"""SIGTERM and Ctrl-C: the batch in hand is finished, then the run stops with a non-zero exit."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from paraforge.errors import Interrupted

logger = logging.getLogger(__name__)
_stop = threading.Event()


def stop_requested() -> bool:
    """Whether SIGTERM or Ctrl-C has arrived since :func:`graceful_interrupts` was entered."""
    return _stop.is_set()


def check_interrupt() -> None:
    """Call between batches.

    Raises:
        Interrupted: SIGTERM or Ctrl-C has arrived.
    """
    if _stop.is_set():
        raise Interrupted()


def _request_stop(signum: int, frame: FrameType | None) -> None:
    if _stop.is_set() and signum == signal.SIGINT:
        # A second Ctrl-C means "now": nothing is lost but the batch in hand.
        os._exit(Interrupted.exit_code)
    _stop.set()
    logger.warning("%s: finishing the batch in hand", signal.Signals(signum).name)


@contextmanager
def graceful_interrupts() -> Iterator[None]:
    """Turn SIGTERM and SIGINT into a request that :func:`check_interrupt` sees, while the block runs.

    Only the main thread may install signal handlers; elsewhere the block runs unchanged.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _stop.clear()
    previous = {number: signal.signal(number, _request_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _stop.clear()
