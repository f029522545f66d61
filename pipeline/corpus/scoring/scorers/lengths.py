"""Tokens of each side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from paraforge.base.shards.column import column
from paraforge.corpus.scorer import Scorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class Lengths(Scorer):
    """Number of tokens of the reference and of the translation."""

    fields = (
        column("reference_tokens", pa.int32(), "Moses tokens of the reference"),
        column("translation_tokens", pa.int32(), "Moses tokens of the translation"),
    )
    labels: ClassVar[Mapping[str, str]] = {
        "reference_tokens": "tokens of the reference",
        "translation_tokens": "tokens of the translation",
    }
    place = 10

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """int32."""
        return {
            "reference_tokens": pa.array(pairs.reference_tokens.lengths.astype(np.int32)),
            "translation_tokens": pa.array(pairs.translation_tokens.lengths.astype(np.int32)),
        }
