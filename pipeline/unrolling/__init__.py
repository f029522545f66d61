"""Sentence embeddings from neighbouring sentences, read by unrolling the decoders (Zhelezniak et al. 2018).

from paraforge.unrolling import load
model = load("models/decoders/bow-gru@unrolled:3")
scores = model.similarity(["A dog runs."], ["It is raining."])  # dot products
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paraforge.unrolling.model import DecoderModel

__all__ = ["load"]


def load(name: str | Path, device: str = "cpu") -> DecoderModel:
    """Open a trained model on a device.

    name: its directory, and behind `@` what to read it by if that is not what it was trained for; see
        :func:`~paraforge.unrolling.naming.split_name`.

    Raises:
        ConfigurationError: no such device.
        InputError: no model's directory, or a damaged one; pickles are never opened; a representation that
            it does not have.
    """
    from paraforge.learning.devices import check_device
    from paraforge.unrolling.model import DecoderModel
    from paraforge.unrolling.naming import split_name

    check_device(device)
    directory, representation = split_name(name)
    model = DecoderModel.open(directory)
    if representation is not None:
        model = model.read_by(representation)
    model.network.to(device)
    return model
