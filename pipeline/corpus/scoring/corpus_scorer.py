"""Scorers that compare a pair with the words and lengths of its corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.corpus.scorer import Scorer, ScorerChoice

if TYPE_CHECKING:
    from paraforge.corpus.scoring.corpus_counts import CorpusCounts
    from paraforge.corpus.scoring.word_scorer import WordScorer

FEWEST_WORDS = 1000
"""Distinct words that the references must have to show what a word is, where no general scorer helps."""


class CorpusScorer(Scorer):
    """Compares each pair with the counts of its corpus; without counts there is no such score."""

    is_sign = True

    def __init__(self, counts: CorpusCounts, general: WordScorer | None = None) -> None:
        """counts: of the corpus. general: a scorer of words, which knows more words of the language."""
        self._counts = counts
        self._general = general

    @classmethod
    def build(cls, choice: ScorerChoice) -> CorpusScorer | None:
        """Where the corpus was counted."""
        from paraforge.corpus.scoring.word_scorer import WordScorer

        general = choice.vectors if isinstance(choice.vectors, WordScorer) else None
        return None if choice.counts is None else cls(choice.counts, general)

    @property
    def knows_enough(self) -> bool:
        """Whether a word that is not known says something: of a small corpus alone it does not."""
        return self._general is not None or len(self._counts.words) >= FEWEST_WORDS

    def knows(self, words: Any) -> npt.NDArray[np.bool_]:
        """Whether the references or the general scorer have each of the words, a pyarrow string array."""
        import pyarrow.compute as pc

        known = pc.is_in(words, value_set=self._counts.words).to_numpy(zero_copy_only=False)
        if self._general is None:
            return known
        others = ~known
        known = known.copy()
        known[others] = self._general.vectors.knows(words.filter(pa.array(others)).to_pylist())
        return known
