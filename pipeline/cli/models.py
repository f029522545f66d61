"""Which kind of trained model a directory holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paraforge import embeddings, unrolling
from paraforge.unrolling.naming import is_decoder_model


def loader_of(name: Path) -> Callable[..., Any]:
    """What opens the model of this name: trained decoders, or sentence embeddings."""
    return unrolling.load if is_decoder_model(name) else embeddings.load
