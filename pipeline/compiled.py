"""Loops compiled by numba, where neither Arrow nor numpy has the operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT, fast: bool = False) -> FunctionT:
    """Compile a function, keeping the machine code beside the module where that can be written.

    fast: sums may be taken in any order, several numbers at once; nothing may be NaN.
    """
    try:
        return cast("FunctionT", numba.njit(nogil=True, cache=True, fastmath=fast)(function))
    except RuntimeError:  # neither the package's nor the user's cache directory can be written
        return cast("FunctionT", numba.njit(nogil=True, fastmath=fast)(function))


def compiled_fast(function: FunctionT) -> FunctionT:
    """Compile a function whose sums may be taken in any order; see :func:`compiled`."""
    return compiled(function, fast=True)
