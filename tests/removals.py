"""A process that is killed in a removal: after so many files nothing more is removed."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock


class Killed(BaseException):
    """No handler of the product's catches it."""


class _Removals:
    def __init__(self, allowed: float) -> None:
        self.left = allowed
        self.seen: list[str] = []

    def counted(self, function: Any) -> Any:
        def remove(path: Any, *arguments: Any, **options: Any) -> None:
            name = Path(os.fsdecode(path))
            if name.name == "holder.json":  # of the lock, not of the work
                return function(path, *arguments, **options)
            if self.left <= 0:
                raise Killed
            self.left -= 1
            self.seen.append(re.sub(r"[0-9a-f]{8,}|\d+", "", name.parent.name) + name.suffix)
            return function(path, *arguments, **options)

        return remove


@contextmanager
def killed_after(removals: float) -> Iterator[list[str]]:
    """Inside, one more removal of a file or directory raises :class:`Killed`, and so does every later one.

    Gives the kind of each thing removed: its directory's name without numbers and keys, and its suffix.
    """
    state = _Removals(removals)
    with (
        mock.patch.object(os, "unlink", state.counted(os.unlink)),
        mock.patch.object(os, "rmdir", state.counted(os.rmdir)),
        mock.patch.object(Path, "unlink", _as_method(state.counted(os.unlink))),
        mock.patch.object(Path, "rmdir", _as_method(state.counted(os.rmdir))),
    ):
        yield state.seen


def _as_method(remove: Any) -> Any:
    def method(path: Path, missing_ok: bool = False) -> None:
        if missing_ok and not os.path.lexists(path):
            return
        remove(path)

    return method
