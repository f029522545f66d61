"""Paraphrastic sentence embeddings: encoders, loss, negatives, trainer, and trained models in use.

from paraforge.embeddings import load
model = load("models/embeddings/word")
vectors = model.encode(["A dog runs.", "It is raining."])
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paraforge.embeddings.model import SentenceModel


def load(directory: str | Path, device: str = "cpu") -> SentenceModel:
    """Open a trained model, `models/embeddings/NAME`, on a device.

    Raises:
        ConfigurationError: no such device.
        InputError: no model's directory, or a damaged one; pickles are never opened.
    """
    from paraforge.embeddings.model import SentenceModel
    from paraforge.learning.devices import check_device

    check_device(device)
    model = SentenceModel.open(directory)
    model.encoder.to(device)
    return model
