"""Importers of translation model formats, one per module; each converts to CTranslate2's.

A module here implements :class:`Importer`.
"""

import importlib
from pathlib import Path
from typing import Any, Protocol, cast

from paraforge.base.errors import InputError

# A directory can match several formats, e.g. Transformers weights with a checkpoint next to them.
_FORMATS = ("ctranslate2", "transformers", "fairseq")


class Importer(Protocol):
    """The protocol of an importer's module.

    Optional, for models that name their languages: ``languages_of(path, source_language, target_language)``,
        the languages from the user's choice (or None) and the model.

    ORIGIN: name of the format in ``model.json``.
    WANTED: files of such a model, for the message if no format fits.
    """

    ORIGIN: str
    WANTED: str

    def recognizes(self, path: Path) -> bool:
        """Return whether a file or directory has this format."""

    def convert_model(self, path: Path, output: Path, languages: tuple[str, str]) -> dict[str, Any]:
        """Write the model to ``output`` in CTranslate2's form. Returns entries of ``model.json``. Raises
        InputError if a part is missing or damaged, or the parts do not belong together."""


def importer_for(path: Path) -> Importer:
    """Return the module for a model's format. Raises InputError if no format fits."""
    importers = [cast("Importer", importlib.import_module(f"{__name__}.{name}")) for name in _FORMATS]
    for importer in importers:
        if importer.recognizes(path):
            return importer
    forms = ", or ".join(importer.WANTED for importer in importers)
    raise InputError(
        "not a model that can be imported",
        path,
        remedy=f"A directory needs {forms}. Unpack archives first. OPUS-MT on the Hub: Helsinki-NLP/NAME.",
    )
