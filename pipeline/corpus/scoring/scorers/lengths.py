"""Tokens of each side."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paraforge.corpus.scorer import Column, Scale, Scorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class Lengths(Scorer):
    """Number of tokens of the reference and of the translation."""

    columns = (
        Column(
            "reference_tokens",
            pa.int32(),
            "Moses tokens of the reference",
            label="tokens of the reference",
            scale=Scale(0, 101, 101),
            limits=(0, inf),
        ),
        Column(
            "translation_tokens",
            pa.int32(),
            "Moses tokens of the translation",
            label="tokens of the translation",
            scale=Scale(0, 101, 101),
            limits=(0, inf),
        ),
    )
    place = 10

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """int32."""
        return {
            "reference_tokens": pa.array(pairs.reference_tokens.lengths.astype(np.int32)),
            "translation_tokens": pa.array(pairs.translation_tokens.lengths.astype(np.int32)),
        }
