"""How much of a translation is copied from its reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paraforge.corpus.scorer import SHARES, Column, Scorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class CopyRate(Scorer):
    """Share of the translation's tokens that are also in the reference, each at most as often as it is there.

    Size of the multiset intersection of both sides' tokens / tokens of the translation. It differs from the
    unigram overlap where the translation is longer than its reference: a reference that is contained in a
    long translation has overlap 1 and a lower copy rate. 0 where the translation has no token.
    """

    columns = (
        Column(
            "copy_rate",
            pa.float32(),
            "share of the translation's tokens that stand in the reference (multiset)",
            scale=SHARES,
        ),
    )
    place = 40

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, 0 to 1."""
        rate = pairs.shared[0] / np.maximum(pairs.translation_tokens.lengths, 1)
        return {"copy_rate": pa.array(rate.astype(np.float32))}
