"""Paraforge: paraphrase corpora by back-translation, and what is trained and mined from them.

import paraforge
model = paraforge.load("models/embeddings/word")
vectors = model.encode(["A dog runs.", "It is raining."])
scores = model.similarity(["A dog runs."], ["It is raining."])
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paraforge.loading import Model

__all__ = ["__version__", "load"]
__version__ = "0.1.0"


def load(name: str | Path, device: str = "cpu") -> Model:
    """Open any model that gives sentences vectors, on a device.

    name: a directory of trained embeddings, trained decoders (behind `@` what to read them by, e.g.
        `@unrolled:3`), SIF, word vectors or sentence-transformers; or a file of word vectors.

    Raises:
        ConfigurationError: no such device.
        InputError: no model, or a damaged one; pickles are never opened.
    """
    from paraforge.loading import load as load_by_name

    return load_by_name(name, device)
