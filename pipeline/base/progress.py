"""The progress display: rows, rate and time left, as a bar on a terminal and as occasional lines
elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BEFORE_A_BAR = 0.3
_COUNTED = (
    "{desc}: {percentage:3.0f}% |{bar}| {n_fmt} of {total_fmt}{unit}, {rate_fmt}, {remaining} left{postfix}"
)


class Progress:
    """How a step reports its progress."""

    def __init__(self, bar: tqdm, description: str) -> None:  # type: ignore[type-arg]  # generic in the stubs only
        self._bar = bar
        self._description = description

    def update(self, amount: int) -> None:
        """Report ``amount`` more finished units."""
        self._bar.update(amount)

    def status(self, text: str) -> None:
        """Show a short text (a loss, a score) after the bar."""
        self._bar.set_postfix_str(text, refresh=False)

    def begin(self, phase: str) -> None:
        """Restart the count for another pass over the same units."""
        self._bar.n = self._bar.last_print_n = 0
        self._bar.start_t = self._bar.last_print_t = time.time()
        self._bar.set_description_str(f"{self._description}: {phase}", refresh=False)


class _Bar(tqdm):  # type: ignore[misc, type-arg]  # generic in the stubs only
    @staticmethod
    def format_meter(*arguments: Any, **named: Any) -> str:
        """Format a rate like tqdm, but as ``5.1 s/updates`` instead of ``5.1s/ updates``."""
        return str(tqdm.format_meter(*arguments, **named)).replace("s/ ", " s/")


class _Lines:
    """Replaces a terminal: writes one line per state instead of overwriting one line."""

    def write(self, text: str) -> None:
        """Write the text of the bar without its carriage return and padding."""
        if line := text.strip("\r\n "):
            sys.stderr.write(f"{line}\n")

    def flush(self) -> None:
        """Flush the output."""
        sys.stderr.flush()


@contextmanager
def progress(*, total: int | None, unit: str, description: str, done: int = 0) -> Iterator[Progress]:
    """Show progress on standard error while the block runs.

    total: total units, or None if unknown. unit: what is counted, e.g. ``pairs``.
    description: what is being done, e.g. ``score``.
    done: units finished by an earlier run, which count as progress but not in the rate.
    """
    interactive = sys.stderr.isatty()
    bar = _Bar(
        total=total,
        initial=done,
        unit=f" {unit}",
        desc=description,
        file=sys.stderr if interactive else _Lines(),
        unit_scale=True,
        dynamic_ncols=interactive,
        mininterval=0.2 if interactive else SECONDS_BETWEEN_LINES,
        maxinterval=1.0 if interactive else SECONDS_BETWEEN_LINES,
        smoothing=0.1,
        ascii=not interactive,
        # Short work needs no bar; a finished bar makes room for the next one or for the result.
        delay=_SECONDS_BEFORE_A_BAR if interactive else SECONDS_BETWEEN_LINES,
        leave=not interactive,
        bar_format=_COUNTED if total else None,
    )
    with bar:
        yield Progress(bar, description)


class JobCounter:
    """Counts each job's amount exactly once, even if the job runs twice."""

    def __init__(self, amounts: list[int], bar: Progress) -> None:
        """amounts: amount of work per job. bar: the progress display."""
        self._amounts = amounts
        self._bar = bar
        self._seen = [0] * len(amounts)
        self._lock = threading.Lock()

    def tell(self, index: int, rows: int) -> None:
        """Report that job ``index`` has done this many rows since it started."""
        with self._lock:
            if rows > self._seen[index]:
                self._bar.update(rows - self._seen[index])
                self._seen[index] = rows

    def finish(self, index: int, rows: int) -> None:
        """Report that job ``index`` is done after reporting this many rows."""
        self.tell(index, max(rows, self._amounts[index]))
