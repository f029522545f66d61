"""SIGTERM, Ctrl-C and closed pipes: a program ends with the right exit code.

A signal ends the program immediately. This is safe: every file under its final name is complete, and the next
run picks up from those files. Only training first finishes its update and writes a checkpoint
(:func:`graceful_interrupts`).
"""

import _thread
import atexit
import logging
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from paraforge.base.errors import Interrupted, ParaforgeError, describe_os_error, names_in_utf8
from paraforge.base.files import remove_unfinished

logger = logging.getLogger(__name__)
SIGNALS = (signal.SIGTERM, signal.SIGINT)
_stop = threading.Event()  # set by the first signal inside graceful_interrupts
_begun = threading.Event()  # set while the block of last_words runs
_handled = threading.Event()  # by the main thread; the thread that watches signals may be earlier or later
_ended = threading.Event()  # set when a signal outside of graceful_interrupts has been announced
_announcing = threading.RLock()
_GRACE_SECONDS = 5.0


def stop_requested() -> bool:
    """Return whether SIGTERM or Ctrl-C has arrived since :func:`graceful_interrupts` was entered."""
    return _stop.is_set()


def _request_stop(signum: int, frame: FrameType | None) -> None:
    if _stop.is_set() and signum == signal.SIGINT:
        _exit_now()  # a second Ctrl-C means "now"
    _stop.set()
    again = "; press it again to stop at once" if signum == signal.SIGINT else ""
    name = "Ctrl-C" if signum == signal.SIGINT else signal.Signals(signum).name
    message = ("%s: stopping after a checkpoint%s", name, again)
    # In another thread, because the signal can arrive while this one writes a record: a stream is not
    # reentrant. Not by threading.Thread, whose locks this thread may hold.
    with suppress(RuntimeError):  # the interpreter is shutting down
        _thread.start_new_thread(logger.warning, message)


@contextmanager
def graceful_interrupts() -> Iterator[None]:
    """Note SIGTERM or Ctrl-C for :func:`stop_requested` while the block runs, instead of ending at once.

    Only the main thread may install signal handlers; elsewhere the block runs unchanged. Raises Interrupted
    if a signal arrived in the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
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
    """End the program with code 130 on SIGTERM or Ctrl-C from now on.

    Call it in the first line of a program, because imports can take seconds. Until :func:`last_words` is
    entered, the program ends at once; afterwards it ends by SystemExit, so that temporary files are removed.
    A library that is busy or ignores SystemExit gets five seconds. A child process of
    :mod:`multiprocessing` only ignores Ctrl-C, because its parent ends it.

    Standard streams that the caller closed are opened on the null device. Otherwise the next data file would
    get such a stream's number, and a message would be written into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # a new file gets the lowest free number, which is this one
            setattr(sys, name, Path(os.devnull).open("w" if number else "r"))  # noqa: SIM115 - stays open
    if multiprocessing.current_process().name != "MainProcess":  # known before its main module is imported
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return
    for number in SIGNALS:
        signal.signal(number, _end)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    threading.Thread(target=_watch, args=(reading,), daemon=True, name="signals").start()
    os.register_at_fork(after_in_child=_forget)
    atexit.register(_ignore_signals)  # what is registered first runs last


def _ignore_signals() -> None:
    """Ignore signals that arrive while the interpreter shuts down, because the work is done."""
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
    sys.unraisablehook = lambda _: None  # SystemExit raised in a library's callback
    raise SystemExit(Interrupted.exit_code)


def _announce() -> None:
    with _announcing:
        if not _ended.is_set():
            with suppress(OSError):
                os.write(2, b"interrupted\n")
            _ended.set()  # only now: whoever sees it may end the program at once


def _watch(reading: int) -> None:
    """Handle signals while the main thread is inside a library, where Python's handlers cannot run."""
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


def _exit_now(code: int = Interrupted.exit_code) -> None:
    """End this process at once, and its child processes, which would outlive it."""
    remove_unfinished()
    for child in multiprocessing.active_children():
        child.terminate()
    os._exit(code)


def _exit_later(code: int) -> None:
    time.sleep(_GRACE_SECONDS)
    _exit_now(code)


def _forget() -> None:
    """Restore default signals in a forked child: a signal that ends the child is not one for its parent."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def last_words() -> Iterator[None]:
    """Turn signals and closed pipes into exit codes; wraps everything after :func:`end_on_signals`.

    A signal gives code 130, even if a library replaced or ignored SystemExit, and also after the block until
    the interpreter shuts down. A closed standard output is not an error: its reader has seen enough. After an
    error, threads whose results are no longer needed, such as requests to a server, get five seconds.
    """
    _begun.set()
    try:
        yield
        sys.stdout.flush()
    except BaseException as error:
        if _ended.is_set():
            raise SystemExit(Interrupted.exit_code) from None
        # Typer turns it into sys.exit(1).
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            closed = [descriptor for descriptor in (1, 2) if _is_closed(descriptor)]
            for descriptor in closed:  # output flushed at exit is discarded
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            if closed:
                raise SystemExit(0 if 1 in closed else 1) from None
        if isinstance(error, SystemExit) and error.code and signal.getsignal(signal.SIGTERM) is _end:
            threading.Thread(target=_exit_later, args=(error.code,), daemon=True, name="exit").start()
        raise
    finally:
        _begun.clear()  # SystemExit has nothing left to clean up
    if _ended.is_set():
        raise SystemExit(Interrupted.exit_code)


@contextmanager
def errors_in_words(tell: Callable[[str], object]) -> Iterator[None]:
    """Turn a mistake of the user or a fault of the machine into one message and an exit code, without a
    traceback; wraps everything after :func:`end_on_signals`.

    tell: shows the message.
    """
    with last_words():
        try:
            with names_in_utf8():
                yield
        except ParaforgeError as error:
            tell(str(error))
            sys.exit(error.exit_code)
        except (OSError, MemoryError) as error:  # full disk or memory, missing permission: no defect
            if isinstance(error, BrokenPipeError) and (_is_closed(1) or _is_closed(2)):
                raise  # last_words knows what to do
            tell(describe_os_error(error))
            sys.exit(1)


def _is_closed(descriptor: int) -> bool:
    """Return whether the pipe that a descriptor writes to has lost its reader."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
