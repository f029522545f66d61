"""Paraforge: paraphrase corpora by back-translation, and what is trained and mined from them.

import paraforge
model = paraforge.load("models/embeddings/word")
vectors = model.encode(["A dog runs.", "It is raining."])
scores = model.similarity(["A dog runs."], ["It is raining."])
"""

from pathlib import Path
from typing import Any

from paraforge.versions import __version__

__all__ = ["__version__", "load"]


def load(name: str | Path, device: str = "cpu") -> Any:
    """Open any model that gives sentences vectors, or paraphrases them, on a device: a
    :class:`~paraforge.embeddings.evaluation.comparing.Model`, or a
    :class:`~paraforge.products.paraphrasing.paraphraser.Paraphraser`.

    name: a directory of trained embeddings, a paraphraser, SIF, word vectors or sentence-transformers; or a
        file of word vectors.

    Raises:
        ConfigurationError: no such device.
        InputError: no model, or a damaged one; pickles are never loaded.
    """
    from paraforge.products.loading import load_any

    return load_any(name, device)
