"""How unusual the length of the translation is, among the translations of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paraforge.corpus.scorer import Column, Scale
from paraforge.corpus.scoring.corpus_scorer import CorpusScorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs


class LengthSurprise(CorpusScorer):
    """Standard score of the log ratio of both sides' characters in the pair's source.

    Below zero the translation is shorter than is usual; a half that is missing, or a sentence that was added,
    is 3 to 5 deviations from it.
    """

    columns = (
        Column(
            "length_surprise",
            pa.float32(),
            "log ratio of the characters of translation and reference, "
            "in deviations from the median of its source",
            label="deviations from the usual length",
            scale=Scale(-10, 10, 40),
        ),
    )
    worse = "farther"
    place = 53

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, never null."""
        from paraforge.corpus.scoring.pairs import by_source, log_length_ratios

        surprise = log_length_ratios(pairs.reference, pairs.translation)
        for source, rows in by_source(pairs.source):
            usual, deviation = self._counts.usual_length(source)
            surprise[rows] = (surprise[rows] - usual) / deviation
        return {"length_surprise": pa.array(surprise.astype(np.float32))}
