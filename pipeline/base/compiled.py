"""Loops compiled by numba, for operations that neither Arrow nor numpy has."""

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.registry import CPUDispatcher

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

# No C code calls these functions. Without the C wrapper, each compiles in four fifths of the time.
_OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}


def compiled(function: FunctionT) -> FunctionT:
    """Compile a function and cache the machine code beside its module, if that directory is writable.

    Sums are taken in the order written, so every processor gives the same bytes. The machine code contains
    the values of the module's constants and the compiled functions it calls, but numba's cache only checks
    the function's own file. So the cache key also covers those constants and functions.
    """
    name = function.__qualname__
    function.__qualname__ = f"{name}-{_surroundings(function.__module__)}"
    try:
        return cast("FunctionT", numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:  # neither the package's nor the user's cache directory can be written
        return cast("FunctionT", numba.njit(**_OPTIONS)(function))
    finally:
        function.__qualname__ = name


def _surroundings(module: str) -> str:
    """Return a checksum of a module's constants and of the modules that its imported compiled functions come
    from."""
    digest = hashlib.sha256()
    for name, value in sorted(vars(sys.modules[module]).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, CPUDispatcher):
            origin = value.py_func.__module__
            digest.update(f"{name} {'' if origin == module else _digest_of_module(origin)}\n".encode())
        elif isinstance(value, np.ndarray):
            digest.update(f"{name} {value.dtype} {value.shape}\n".encode() + value.tobytes())
        elif isinstance(value, (int, float, str, bytes, tuple, np.generic)):
            digest.update(f"{name} {value!r}\n".encode())
    return digest.hexdigest()[:16]


@cache
def _digest_of_module(module: str) -> str:
    """Return a checksum of an imported module: its source text and its surroundings."""
    file = sys.modules[module].__file__
    text = Path(file).read_bytes() if file else b""
    return hashlib.sha256(text + _surroundings(module).encode()).hexdigest()
