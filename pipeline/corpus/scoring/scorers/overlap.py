"""Overlap of the two sides' unigrams, bigrams and trigrams (ParaNMT-50M, section 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paraforge.corpus.scorer import SHARES, Column, Scorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class Overlap(Scorer):
    """Size of the multiset intersection of both sides' n-grams / the smaller side's number of n-grams. 0
    where a side has no n-gram; 1 where the side with fewer n-grams has no other ones."""

    columns = (
        Column(
            "overlap_1",
            pa.float32(),
            "unigram overlap: multiset intersection / the smaller total",
            label="unigram overlap",
            scale=SHARES,
        ),
        Column("overlap_2", pa.float32(), "bigram overlap", label="bigram overlap", scale=SHARES),
        Column("overlap_3", pa.float32(), "trigram overlap", label="trigram overlap", scale=SHARES),
    )
    place = 30

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, 0 to 1."""
        from paraforge.base.text.ngrams import totals

        result = {}
        for order, name in enumerate(self.names, start=1):
            smaller = np.minimum(
                totals(pairs.reference_tokens, order), totals(pairs.translation_tokens, order)
            )
            # Nothing is shared where the smaller total is 0.
            overlap = pairs.shared[order - 1] / np.maximum(smaller, 1)
            result[name] = pa.array(overlap.astype(np.float32))
        return result
