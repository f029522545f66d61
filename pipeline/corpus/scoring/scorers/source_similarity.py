"""How well the reference says what its foreign side says: whether the bitext is aligned."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paraforge.corpus.scorer import Column, Scale, Scorer, ScorerChoice

if TYPE_CHECKING:
    from paraforge.corpus.scoring.lexical_table import LexicalTable
    from paraforge.corpus.scoring.pairs import Pairs


class SourceSimilarity(Scorer):
    """Share of the information in the words of reference and foreign side that the other side gives, by the
    lexical table that was learnt from the corpus; see
    :meth:`~paraforge.corpus.scoring.lexical_table.LexicalTable.similarities`."""

    columns = (
        Column(
            "source_similarity",
            pa.float32(),
            "share of the information in the words of reference and foreign side that the other side gives",
            label="similarity to the source",
            scale=Scale(-0.4, 1, 28),
            limits=(-inf, 1),
        ),
    )
    worse = "smaller"
    place = 57

    def __init__(self, lexical: LexicalTable) -> None:
        """lexical: learnt from the corpus."""
        self._lexical = lexical

    @classmethod
    def build(cls, choice: ScorerChoice) -> SourceSimilarity | None:
        """Where a table was learnt."""
        return None if choice.lexical is None else cls(choice.lexical)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, at most 1; null without a foreign side, or where a side has no word."""
        from paraforge.corpus.scoring.lexical_table import foreign_units, units_of

        found = self._lexical.similarities(foreign_units(pairs.source_text), units_of(pairs.reference_tokens))
        return {"source_similarity": pa.array(found, from_pandas=True)}
