"""Loops compiled by numba, where neither Arrow nor numpy has the operation."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """Compile a function, keeping the machine code beside the module where that can be written.

    Sums are taken in the order that is written, so that every processor gives the same bytes.
    """
    try:
        return cast("FunctionT", numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # neither the package's nor the user's cache directory can be written
        return cast("FunctionT", numba.njit(nogil=True)(function))
