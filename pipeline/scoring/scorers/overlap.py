"""Overlap of the two sides' unigrams, bigrams and trigrams (ParaNMT-50M, section 5.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from paraforge.scoring.ngrams import totals
from paraforge.scoring.pairs import HIGHEST_ORDER, Pairs


class Overlap:
    """Size of the multiset intersection of both sides' n-grams / the smaller side's number of n-grams.

    0 where a side has no n-gram; 1 where the side with fewer n-grams has no other ones.
    """

    columns = tuple(f"overlap_{order}" for order in range(1, HIGHEST_ORDER + 1))

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, 0 to 1."""
        result = {}
        for order, column in enumerate(self.columns, start=1):
            smaller = np.minimum(
                totals(pairs.reference_tokens, order), totals(pairs.translation_tokens, order)
            )
            # Nothing is shared where the smaller total is 0.
            overlap = pairs.shared[order - 1] / np.maximum(smaller, 1)
            result[column] = pa.array(overlap.astype(np.float32))
        return result
