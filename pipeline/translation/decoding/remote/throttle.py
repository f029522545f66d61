"""How many requests a server is sent at a time: more while it keeps up, half as many when it does not."""

import random
import threading
import time
from collections.abc import Callable

from paraforge.base.errors import ParaforgeError
from paraforge.base.interrupts import check_interrupt

_POLL_SECONDS = 0.2
_FIRST_LIMIT = 4.0
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0


class Throttle:
    """Additive increase, multiplicative decrease, as TCP does it, and pauses that all threads keep.

    The limit doubles from round to round until the first sign of overload; from then on it grows by one a
    round and is halved at each sign. Requests that were already under way when it was halved say nothing new.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(most)
        self._clock = clock
        self._changed = threading.Condition()
        self._under_way = 0
        self._growing_fast = True
        self._cut_at = -1.0
        self._resume_at = 0.0
        self._pauses = 0
        self._trouble_since: float | None = None
        self._stopped: ParaforgeError | None = None
        self.limit = min(_FIRST_LIMIT, self._most)
        self.successes = 0

    def enter(self) -> float:
        """Wait for a turn; gives the time at which it begins, for the call of what came of it.

        Raises:
            ParaforgeError: what :meth:`stop` was called with.
            Interrupted: SIGTERM or Ctrl-C arrived.
        """
        with self._changed:
            while True:
                self._check()
                now = self._clock()
                wait = self._resume_at - now
                if wait <= 0 and self._under_way < max(1, int(self.limit)):
                    self._under_way += 1
                    return now
                self._changed.wait(min(_POLL_SECONDS, wait) if wait > 0 else _POLL_SECONDS)

    def succeeded(self) -> None:
        """A request was answered."""
        with self._changed:
            self._leave()
            self.successes += 1
            self._trouble_since, self._pauses = None, 0
            self.limit = min(self._most, self.limit + (1 if self._growing_fast else 1 / self.limit))

    def failed(self) -> None:
        """A request failed, and its sentence may be at fault."""
        with self._changed:
            self._leave()
            self._trouble()

    def overloaded(self, begun: float, wait: float | None = None) -> None:
        """The server cannot keep up, or is away.

        begun: what :meth:`enter` gave.
        wait: seconds that the server asks for. Without an answer in between the pause is also at least twice
            as long as the last one.
        """
        with self._changed:
            self._leave()
            now = self._trouble()
            pause = wait or 0.0
            if begun > self._cut_at:
                self._cut_at = now
                self._growing_fast = False
                self.limit = max(1.0, self.limit / 2)
                if wait is None or self._pauses:
                    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._pauses)
                    pause = max(pause, longest * random.uniform(0.5, 1))
                self._pauses += 1
            self._resume_at = max(self._resume_at, now + pause)

    def stop(self, error: ParaforgeError) -> ParaforgeError:
        """From now on nobody gets a turn; gives the first error that this was called with."""
        with self._changed:
            self._stopped = self._stopped or error
            self._changed.notify_all()
            return self._stopped

    def sleep(self, seconds: float) -> None:
        """Sleep; raises what :meth:`enter` raises."""
        until = self._clock() + seconds
        with self._changed:
            while (left := until - self._clock()) > 0:
                self._check()
                self._changed.wait(min(left, _POLL_SECONDS))

    def trouble_seconds(self) -> float:
        """Seconds since the first failure after the last answer; 0 where there was none."""
        with self._changed:
            return 0.0 if self._trouble_since is None else self._clock() - self._trouble_since

    def _check(self) -> None:
        check_interrupt()
        if self._stopped is not None:
            raise self._stopped

    def _trouble(self) -> float:
        now = self._clock()
        if self._trouble_since is None:
            self._trouble_since = now
        return now

    def _leave(self) -> None:
        self._under_way -= 1
        self._changed.notify_all()
