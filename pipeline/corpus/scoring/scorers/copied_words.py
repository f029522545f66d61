"""Foreign words that a translation leaves as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.scorer import SHARES, Column
from paraforge.corpus.scoring.corpus_scorer import CorpusScorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class CopiedWords(CorpusScorer):
    """Share of the translation's words that its foreign side has and that are otherwise unknown.

    A name that some reference has is not counted, nor is a number; see
    :class:`~paraforge.corpus.scoring.scorers.unknown_words.UnknownWords`.
    """

    columns = (
        Column(
            "copied_words",
            pa.float32(),
            "share of the translation's words that the foreign side has and that are unknown otherwise",
            label="share of copied foreign words",
            scale=SHARES,
        ),
    )
    worse = "larger"
    place = 55

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, 0 to 1; null without a foreign side, or where the translation has no word."""
        from paraforge.base.text.tokens import tokenize_column

        row, word = pairs.unknown_words(self.knows(pairs.vocabulary))
        foreign = tokenize_column(pairs.source_text.take(pa.array(rows := np.unique(row))))
        places = pc.index_in(pa.array(foreign.vocabulary, pa.string()), value_set=pairs.vocabulary)
        ids = places.fill_null(-1).to_numpy()[foreign.ids]
        size = len(pairs.vocabulary)
        copied = np.isin(row * size + word, (rows[foreign.row_numbers] * size + ids)[ids >= 0])
        share = np.bincount(row[copied], minlength=len(pairs)) / np.maximum(pairs.translation_words, 1)
        missing = (pairs.translation_words == 0) | ~pairs.source_text.is_valid().to_numpy(
            zero_copy_only=False
        )
        return {"copied_words": pa.array(share.astype(np.float32), mask=missing)}
