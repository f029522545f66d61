"""Logging in one place: short lines on standard error, everything with times in ``logs/NAME.log``."""

import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

LOG_DIRECTORY = Path("logs")
# These libraries' messages and tracebacks are not shown, because our own error follows. Their warnings are.
_NOISY = ("distributed", "asyncio", "tornado", "fsspec", "urllib3")


def configure_logging(name: str, directory: Path | None = LOG_DIRECTORY, brief: bool = False) -> None:
    """Send log records to standard error and, unless ``directory`` is None, to ``directory/name.log``.

    With ``brief``, standard error gets only warnings and what :func:`say_result` says. The file gets
    everything, and as debug records the tracebacks of errors. Calling it again replaces what an earlier call
    set up.
    """
    root = logging.getLogger()
    remove_handlers()
    root.setLevel(logging.INFO)
    logging.getLogger("paraforge").setLevel(logging.DEBUG)
    console = _Console(sys.stderr)
    console.setLevel(logging.INFO)
    console.setFormatter(logging.Formatter(f"{name}: %(message)s"))
    console.addFilter(_is_important if brief else _is_ours_or_a_warning)
    handlers: list[logging.Handler] = [console]
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        file = _File(directory / f"{name}.log", encoding="utf-8")
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s [%(process)d]: %(message)s"))
        handlers.append(file)
    for handler in handlers:
        handler.paraforge = True  # type: ignore[attr-defined]  # our mark
        root.addHandler(handler)


def remove_handlers() -> None:
    """Undo :func:`configure_logging`."""
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if getattr(handler, "paraforge", False)]
    for handler in ours:
        root.removeHandler(handler)
        handler.close()
    if ours:
        root.setLevel(logging.WARNING)
        logging.getLogger("paraforge").setLevel(logging.NOTSET)


class _File(logging.FileHandler):
    """A file that loses records when the disk is full. Warnings and errors are on standard error, too."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Do nothing; `logging.Handler.handleError` would print a traceback."""

    def close(self) -> None:
        """Close the file; records that still cannot be written are lost."""
        with suppress(OSError):
            super().close()


class _Console(logging.StreamHandler[TextIO]):
    """Writes above a progress bar on a terminal, which is redrawn below."""

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        if not sys.stderr.isatty():
            super().emit(record)
            return
        from tqdm import tqdm

        with tqdm.external_write_mode(file=sys.stderr):
            super().emit(record)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, e.g. ``1 pair`` or ``2,000 pairs``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def say_result(text: str) -> None:
    """Log the one line that a stage ends with."""
    logging.getLogger(__name__).info("%s", text, extra={"result": True})


def _is_important(record: logging.LogRecord) -> bool:
    shown = record.levelno >= logging.WARNING or getattr(record, "result", False)
    return shown and _is_ours_or_a_warning(record)


def _is_ours_or_a_warning(record: logging.LogRecord) -> bool:
    """Return whether to show a record. Needed because distributed resets its loggers' levels when
    imported."""
    if record.name.partition(".")[0] not in _NOISY:
        return True
    # A nanny's warning means that a finished worker took seconds to exit on a busy machine.
    least = logging.ERROR if record.name == "distributed.nanny" else logging.WARNING
    return record.levelno >= least and record.exc_info is None
