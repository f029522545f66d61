"""SIGTERM, Ctrl-C and closed pipes: a program stops where nothing is lost, and its exit code says so."""

import atexit
import logging
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from paraforge.base.errors import Interrupted
from paraforge.base.files import remove_unfinished

logger = logging.getLogger(__name__)
SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Set by the first signal: while graceful_interrupts holds, and otherwise.
_stop = threading.Event()
_begun = threading.Event()
_handled = threading.Event()  # by the main thread; the watcher of signals may be earlier or later
_ended = threading.Event()
_announcing = threading.RLock()
_GRACE_SECONDS = 2.0


def stop_requested() -> bool:
    """Return whether SIGTERM or Ctrl-C has arrived since :func:`graceful_interrupts` was entered."""
    return _stop.is_set()


def check_interrupt() -> None:
    """Call between batches. Raises Interrupted: SIGTERM or Ctrl-C has arrived."""
    if _stop.is_set():
        raise Interrupted()


def _request_stop(signum: int, frame: FrameType | None) -> None:
    if _stop.is_set() and signum == signal.SIGINT:
        _exit_now()  # a second Ctrl-C means "now"
    _stop.set()
    again = "; press it again to stop at once" if signum == signal.SIGINT else ""
    name = "Ctrl-C" if signum == signal.SIGINT else signal.Signals(signum).name
    logger.warning("%s: stopping after what is being computed%s", name, again)


@contextmanager
def graceful_interrupts() -> Iterator[None]:
    """Turn SIGTERM and SIGINT into a request that :func:`check_interrupt` sees, while the block runs.

    Only the main thread may install signal handlers; elsewhere the block runs unchanged. Raises Interrupted:
    a signal arrived after the last check in the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _stop.clear()
    previous = {number: signal.signal(number, _request_stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        stopped = _stop.is_set()
        _stop.clear()
    if stopped:
        raise Interrupted()


def end_on_signals() -> None:
    """From now on SIGTERM and Ctrl-C end the program with code 130.

    For the first line of a program, as imports may take seconds, too: until :func:`last_words` is entered it
    ends at once, afterwards by SystemExit, so that temporary files are removed. A library that is busy with
    something else, or that ignores SystemExit, is given two seconds. Does nothing in a child process of
    :mod:`multiprocessing`, which its parent ends.
    """
    if multiprocessing.parent_process() is not None:
        return
    for number in SIGNALS:
        signal.signal(number, _end)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    threading.Thread(target=_watch, args=(reading,), daemon=True, name="signals").start()
    os.register_at_fork(after_in_child=_forget)
    atexit.register(_ignore_signals)  # the first to be registered is the last to be run


def _ignore_signals() -> None:
    """From now on the interpreter would be killed by a signal: what it was to do is done."""
    for number in SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_IGN)


def _end(signum: int, frame: FrameType | None) -> None:
    if _handled.is_set():
        _exit_now()
    _handled.set()
    _announce()
    if not _begun.is_set():
        _exit_now()
    sys.unraisablehook = lambda _: None  # SystemExit in a callback of a library
    raise SystemExit(Interrupted.exit_code)


def _announce() -> None:
    with _announcing:
        if not _ended.is_set():
            with suppress(OSError):
                os.write(2, b"interrupted\n")
            _ended.set()  # only now: who sees it may end the program at once


def _watch(reading: int) -> None:
    """See to signals, too, where the main thread is in a library and no handler of Python's can run."""
    requests = 0
    while received := os.read(reading, 1):
        handler = signal.getsignal(received[0])
        if handler is _end:
            _announce()
            time.sleep(_GRACE_SECONDS)
            _exit_now()
        elif handler is _request_stop and received[0] == signal.SIGINT:
            requests += 1
            if requests > 1:
                time.sleep(_GRACE_SECONDS)
                _exit_now()


def _exit_now() -> None:
    remove_unfinished()
    os._exit(Interrupted.exit_code)


def _forget() -> None:
    """In a forked child: what ends the child is no signal to its parent, nor worth a word."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def last_words() -> Iterator[None]:
    """Around all that a program does after :func:`end_on_signals`.

    A signal is code 130, even where a library turned SystemExit into an error of its own or ignored it, and
    after the block, too, until the interpreter takes itself down. A closed standard output is no error:
    whoever read it has what he wanted.
    """
    _begun.set()
    try:
        yield
        sys.stdout.flush()
    except BaseException as error:
        if _ended.is_set():
            raise SystemExit(Interrupted.exit_code) from None
        # Typer makes sys.exit(1) of it.
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            closed = [descriptor for descriptor in (1, 2) if _is_closed(descriptor)]
            for descriptor in closed:  # what is flushed at the end goes nowhere
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            if closed:
                raise SystemExit(0 if 1 in closed else 1) from None
        raise
    finally:
        _begun.clear()  # nothing is left to be removed by SystemExit
    if _ended.is_set():
        raise SystemExit(Interrupted.exit_code)


def _is_closed(descriptor: int) -> bool:
    """Return whether nobody reads the pipe that a descriptor writes to any more."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
