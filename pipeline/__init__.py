"""Paraforge: paraphrase corpora by back-translation, and what is trained and mined from them.

import paraforge
model = paraforge.load("models/embeddings/word")
vectors = model.encode(["A dog runs.", "It is raining."])
scores = model.similarity(["A dog runs."], ["It is raining."])
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from paraforge.versions import __version__

__all__ = ["__version__", "load"]


def load(name: str | Path, device: str = "cpu") -> Any:
    """Open any model that gives sentences vectors, or paraphrases them, on a device: a
    :class:`~paraforge.embeddings.evaluation.similarity.comparing.Model`, or a
    :class:`~paraforge.products.paraphrasing.paraphraser.Paraphraser`.

    name: a directory of trained embeddings, trained decoders (behind `@` what to read them by, e.g.
        `@unrolled:3`), a paraphraser, SIF, word vectors or sentence-transformers; or a file of word vectors.

    Raises:
        ConfigurationError: no such device.
        InputError: no model, or a damaged one; pickles are never opened.
    """
    from paraforge.products.loading import load_any

    return load_any(name, device)


class _FormerModule(ModuleType):
    """The module of exported models, under the name that it had before the package was called `paraforge`."""

    def __getattr__(self, name: str) -> Any:
        if name != "ParaforgeEncoder":
            raise AttributeError(name)  # others look at every module that there is
        return importlib.import_module("paraforge.embeddings.sentence_transformers_module").ParaforgeEncoder


# There is no package `pipeline` for it: a user may have one.
_FORMER = "pipeline.embeddings.sentence_transformers_module"
sys.modules.setdefault(_FORMER, _FormerModule(_FORMER))
