"""Finds modules of a package and classes in them, so that adding one only needs a new file."""

import importlib
import pkgutil
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from paraforge.base.errors import InputError


def found_classes(package: str, base: type[Any]) -> list[type[Any]]:
    """Return subclasses of ``base`` that the modules of a package define, in the order of the modules' names.

    An installed package adds its own by naming its module in the entry point group ``paraforge.LAST``, where
    ``LAST`` is the last part of ``package``: ``paraforge.readers`` for ``paraforge.intake.bitext.readers``.
    """
    names = sorted(found_modules(package).values(), key=lambda name: name.rpartition(".")[2])
    return [value for name in names for value in classes_in(name, base)]


def found_modules(package: str) -> Mapping[str, str]:
    """Return the full names of a package's modules and entry points by short name, without importing them.
    Raises InputError if an entry point has the name of another module."""
    path = importlib.import_module(package).__path__
    return _modules(package, tuple(path), tuple(sys.path))


@cache
def _modules(package: str, path: tuple[str, ...], installed: tuple[str, ...]) -> Mapping[str, str]:
    """Cache :func:`found_modules` for a package's directories and the installed packages."""
    modules = {module.name: f"{package}.{module.name}" for module in pkgutil.iter_modules(path)}
    group = f"paraforge.{package.rpartition('.')[2]}"
    for entry in entry_points(group=group):
        if modules.setdefault(entry.name, entry.value) != entry.value:
            raise InputError(
                f"the entry point '{entry.name}' of {group} is '{entry.value}' of an installed package, but "
                f"also {modules[entry.name]}",
                remedy="Give the entry point another name, or uninstall that package.",
            )
    return modules


def classes_in(module: str, base: type[Any]) -> list[type[Any]]:
    """Return the subclasses of ``base`` that a module defines. Raises the errors of :func:`import_found`."""
    return [
        value
        for value in vars(import_found(module)).values()
        if isinstance(value, type)
        if issubclass(value, base) and value.__module__ == module
    ]


def import_found(module: str) -> Any:
    """Import a module. Raises InputError if another package's module cannot be imported."""
    try:
        return importlib.import_module(module)
    except Exception as error:
        if module.startswith("paraforge."):
            raise
        raise InputError(
            f"the module '{module}', an entry point of an installed package, cannot be imported: {error}",
            remedy="Repair that package, or uninstall it.",
        ) from error
