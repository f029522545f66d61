"""Formats that translation models are distributed in, one a module; each is read into CTranslate2's.

A module here offers what :class:`Importer` says. It is found by being here; another package names its module
in the entry point group ``paraforge.importers``.
"""

import importlib
from pathlib import Path
from typing import Any, Protocol, cast

from paraforge.base.errors import InputError
from paraforge.base.plugins import found_modules

# A directory may look like several: weights of Transformers may have a checkpoint next to them.
_ORDER = ("ctranslate2", "transformers", "fairseq")


class Importer(Protocol):
    """What the module of a format offers.

    Where a model says its languages itself, also ``languages_of(path, source_language, target_language)``:
    the languages, from what the user says (None: nothing) and from the model.

    ORIGIN: name of the format in ``model.json``.
    WANTED: what such a model has, for the message where no format fits.
    """

    ORIGIN: str
    WANTED: str

    def recognises(self, path: Path) -> bool:
        """Return whether a file or directory is of this format."""

    def convert_model(self, path: Path, output: Path, languages: tuple[str, str]) -> dict[str, Any]:
        """Write the model to ``output`` in CTranslate2's form; gives entries of ``model.json``. Raises
        InputError: a part is missing or damaged, or its parts do not belong together."""


def importer_for(path: Path) -> Importer:
    """Return the module that reads a model; those of other packages come first. Raises InputError: no format
    fits."""
    modules = found_modules(__name__)
    names = [name for name in modules if name not in _ORDER] + [*_ORDER]
    importers = [cast("Importer", importlib.import_module(modules[name])) for name in names]
    for importer in importers:
        if importer.recognises(path):
            return importer
    wanted = ", or ".join(importer.WANTED for importer in importers)
    raise InputError(
        "not a model that can be imported",
        path,
        remedy=f"A directory needs {wanted}. Unpack an archive first; OPUS-MT is on the "
        "hub, as Helsinki-NLP/NAME.",
    )
