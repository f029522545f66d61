"""Finds classes by the modules that they are in, so that adding one is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import entry_points
from typing import Any


def found_classes(package: str, base: type[Any]) -> list[type[Any]]:
    """Subclasses of ``base`` that the modules of a package define, in the order of the modules' names.

    An installed package adds its own by naming its module in the entry point group ``paraforge.LAST``, where
    ``LAST`` is the last part of ``package``: ``paraforge.readers`` for ``paraforge.bitext.readers``.
    """
    path = importlib.import_module(package).__path__
    names = [f"{package}.{module.name}" for module in pkgutil.iter_modules(path)]
    names += [entry.value for entry in entry_points(group=f"paraforge.{package.rpartition('.')[2]}")]
    return [
        value
        for name in sorted(names, key=lambda name: name.rpartition(".")[2])
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == name
    ]
