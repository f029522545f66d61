"""Errors written for users: what is wrong, where, and what to do. Each kind has its exit code. Also finds the
pages of the documentation that they name, and what replaces removed names."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from zipfile import BadZipFile

# Control characters in names and texts, which a terminal would execute.
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)], "\ufffd")


class ParaforgeError(Exception):
    """Base of every error that is reported to the user without a traceback.

    exit_code: exit code of the command.
    ends_process: whether the process that raised it can no longer compute anything. A cluster worker then
        exits, so that another takes its place.
    """

    exit_code = 1
    ends_process = False


class InputError(ParaforgeError):
    """A file or value given by the user is wrong. ``str()`` reads ``path:line: message. remedy``; unknown
    parts are left out."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.message = message
        self.path = None if path is None else fspath(path)
        self.line = line
        self.remedy = remedy
        super().__init__(message, self.path, line, remedy)

    def renamed(self, old: str | PathLike[str], new: str | PathLike[str]) -> InputError:
        """Return the same error with another path or name in place of ``old``, which the user would not
        recognize."""
        path = None if self.path is None else self.path.replace(fspath(old), fspath(new))
        return InputError(self.message.replace(fspath(old), fspath(new)), path, self.line, self.remedy)

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.path, self.line) if part is not None)
        text = f"{where}: {self.message}" if where else self.message
        if self.remedy:
            text = f"{text}{'' if text.endswith(('.', '?', '!')) else '.'} {self.remedy}"
        return text.translate(_CONTROLS)


@contextmanager
def describing(path: str | PathLike[str], what: str = "damaged", remedy: str | None = None) -> Iterator[None]:
    """Turn the errors that a damaged file causes, such as missing keys, wrong types and Arrow's errors, into
    an InputError that names the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, BadZipFile) as error:
        raise InputError(f"{what}: {_in_one_line(error)}", path, remedy=remedy) from error


def reading(path: PathLike[str]) -> AbstractContextManager[None]:
    """Return :func:`describing` for a file of a work directory, which the same command makes again."""
    return describing(path, remedy=f"Remove {Path(path).parent}; the same command makes it again.")


def _in_one_line(error: Exception) -> str:
    problems = getattr(error, "errors", None)
    if problems is None:
        return repr(error) if isinstance(error, KeyError) else first_line(error)
    first = problems()[0]  # pydantic's own text fills a page
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def did_you_mean(wrong: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `; did you mean 'minimum'?` if a known name is similar, otherwise nothing.

    cutoff: how similar, from 0 to 1; for short names at most 0.5.
    """
    names = list(known)
    # Prefixes such as 'min' come first. In a name of two letters, one typo is half the name: 'mi' means 'my'.
    close = sorted(
        (name for name in names if len(wrong) > 2 and name.startswith(wrong)), key=len
    ) or difflib.get_close_matches(wrong, names, n=1, cutoff=cutoff if len(wrong) > 4 else 0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


@contextmanager
def names_in_utf8() -> Iterator[None]:
    """Turn a library's error about a file name that is not UTF-8 into an InputError; wraps the whole
    program."""
    try:
        yield
    except UnicodeEncodeError as error:
        if error.reason != "surrogates not allowed":
            raise
        raise InputError("not UTF-8", ascii(error.object), remedy="Rename it.") from error


def check_format(found: int, known: int, path: str | PathLike[str]) -> None:
    """Raise InputError if this version does not know the file's format number (formats count from 1)."""
    if not 1 <= found <= known:
        message = f"written in format {found}, but this version reads {known}"
        raise InputError(message, path, remedy="Upgrade paraforge." if found > known else None)


class ConfigurationError(ParaforgeError):
    """One or more parameters are wrong; all of them are listed at once."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return self.problems[0]
        listed = "\n".join(f"  - {problem}" for problem in self.problems)
        return f"{len(self.problems)} problems in the parameters:\n{listed}"


def install_command(extra: str = "") -> str:
    """Return the command that installs this program or one of its extras the way it was installed: from a
    clone or a wheel. fairseq is not an extra and has its own command."""
    if extra == "fairseq":
        return "paraforge doctor --install-fairseq"
    extras = f"[{extra}]" if extra else ""
    clone = Path(__file__).resolve().parents[2]
    if not (clone / "pyproject.toml").is_file():
        return f"pip install 'paraforge-corpus{extras}'"
    return f"pip install --editable '{'.' if clone == Path.cwd() else clone}{extras}'"


class MissingPackageError(ParaforgeError):
    """An optional package is needed and not installed."""

    exit_code = 3

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(package, extra)

    def __str__(self) -> str:
        return f"this needs the package '{self.package}': {install_command(self.extra)}"


class WorkLockedError(ParaforgeError):
    """Another process is writing to the same work directory."""

    exit_code = 4


class IncompleteError(ParaforgeError):
    """Rows or shards failed, or the input rows are not kept + rejected + failed."""

    exit_code = 5


class RetryError(IncompleteError):
    """A job failed because something was temporarily unavailable. It is run again, on this worker or
    another."""


class Interrupted(ParaforgeError):
    """SIGTERM or Ctrl-C was received."""

    exit_code = 130

    def __str__(self) -> str:
        return super().__str__() or "interrupted"


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module. Raises MissingPackageError if the module or its parent package is not
    installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise MissingPackageError(module.partition(".")[0], extra) from error
        raise


def one_line(text: object) -> str:
    """Return a library's error, or text from a user's file, on one line."""
    return " ".join(str(text).split())


def first_line(error: BaseException) -> str:
    """Return the first line of a library's error, or its class name if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def describe_os_error(error: OSError | MemoryError) -> str:
    """Describe an error of the operating system in one line: what, where, and, if known, what to do."""
    text = str(error)
    if isinstance(error, MemoryError):
        remedy = "free some or set resources.workers to a lower number, and run the same command"
        return f"{one_line(text) or 'memory ran out'}: {remedy}; finished work is kept"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        text += ": free some space and run the same command; finished work is kept"
    elif error.errno in _DISK:
        place = "" if error.filename else f" (of {Path.cwd()}, or of the temporary files)"
        trouble = "fails, is mounted read-only or is not connected"
        text += f": the disk{place} {trouble}; check it ('dmesg'), and run the same command"
    return text


# Errors of a failing disk or a lost network disk.
_DISK = (errno.EIO, errno.ESTALE, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.ETIMEDOUT)


@contextmanager
def naming(path: str | PathLike[str], done: str) -> Iterator[None]:
    """Add this file's name to an OSError that names no file; wraps code that reads or writes it.

    done: ``read`` or ``written``.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            text = f"{os.strerror(error.errno)}, while this was {done}"
            raise OSError(error.errno, text, fspath(path)) from error
        raise


_PACKAGE = Path(__file__).resolve().parent.parent


def page(name: str) -> str:
    """Return the path of a page, such as ``models``, for an error or a help text to name."""
    installed = _PACKAGE / "docs"
    return str((installed if installed.is_dir() else _PACKAGE.parent / "docs") / f"{name}.md")


def replacement(name: str, *owners: str) -> str:
    """Return a sentence on what replaces a removed command, option or parameter, from the table in the
    changelog; empty if the table has no such name.

    name: a command, an option such as ``--format``, or a parameter's last name.
    owners: an option's command, or the sections of a parameter; the row must name one of them.
    """
    places = (_PACKAGE / "CHANGELOG.md", _PACKAGE.parent / "CHANGELOG.md")
    text = next((place.read_text(encoding="utf-8") for place in places if place.is_file()), "")
    for gone, use in re.findall(r"^\| (`.*?) \| (.*) \|$", text, re.MULTILINE):
        words = [word.partition(":")[0] for word in re.findall(r"`([^`]*)`", gone)]
        # "`plan --precision`, `--model`": the first name has the owner's, which the others share.
        names = {part for word in words for part in (word, word.split()[-1], word.rpartition(".")[2])}
        if name in names and (
            not owners or any(re.search(rf"\b{re.escape(owner)}\b", gone) for owner in owners)
        ):
            return f"It was removed in this version; now: {use}"
    return ""
