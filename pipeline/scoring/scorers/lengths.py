"""Tokens of each side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from paraforge.scoring.pairs import Pairs


class Lengths:
    """Number of tokens of the reference and of the translation."""

    columns = ("reference_tokens", "translation_tokens")

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """int32."""
        return {
            "reference_tokens": pa.array(pairs.reference_tokens.lengths.astype(np.int32)),
            "translation_tokens": pa.array(pairs.translation_tokens.lengths.astype(np.int32)),
        }
