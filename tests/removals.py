"""A process that is killed in a removal: after so many files nothing more is removed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock


class Killed(BaseException):
    """No handler of the product's catches it."""


class _Removals:
    def __init__(self, allowed: int) -> None:
        self.left = allowed

    def counted(self, function: Any) -> Any:
        def remove(path: Any, *arguments: Any, **options: Any) -> None:
            if Path(os.fsdecode(path)).name == "holder.json":  # of the lock, not of the work
                return function(path, *arguments, **options)
            if self.left <= 0:
                raise Killed
            self.left -= 1
            return function(path, *arguments, **options)

        return remove


@contextmanager
def killed_after(removals: int) -> Iterator[None]:
    """Inside, one more removal of a file or directory raises :class:`Killed`, and so does every later one."""
    state = _Removals(removals)
    with (
        mock.patch.object(os, "unlink", state.counted(os.unlink)),
        mock.patch.object(os, "rmdir", state.counted(os.rmdir)),
        mock.patch.object(Path, "unlink", _as_method(state.counted(os.unlink))),
        mock.patch.object(Path, "rmdir", _as_method(state.counted(os.rmdir))),
    ):
        yield


def _as_method(remove: Any) -> Any:
    def method(path: Path, missing_ok: bool = False) -> None:
        if missing_ok and not os.path.lexists(path):
            return
        remove(path)

    return method
