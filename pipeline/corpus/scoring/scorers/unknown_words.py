"""Words of the translation that nothing else has: names left as they were, misspellings, gibberish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paraforge.corpus.scorer import SHARES, Column
from paraforge.corpus.scoring.corpus_scorer import CorpusScorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class UnknownWords(CorpusScorer):
    """Share of the translation's words that neither the corpus' references nor the built-in scorer have.

    Words are tokens with a letter. A word of the pair's own reference is known. Null without a word, and of a
    corpus with fewer than 1,000 distinct words that another scorer scores.
    """

    columns = (
        Column(
            "unknown_words",
            pa.float32(),
            "share of the translation's words that neither the references nor the built-in scorer know",
            label="share of unknown words",
            scale=SHARES,
        ),
    )
    worse = "larger"
    place = 51

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, 0 to 1; null as said."""
        row, _ = pairs.unknown_words(self.knows(pairs.vocabulary))
        share = np.bincount(row, minlength=len(pairs)) / np.maximum(pairs.translation_words, 1)
        missing = (pairs.translation_words == 0) | (not self.knows_enough)
        return {"unknown_words": pa.array(share.astype(np.float32), mask=missing)}
