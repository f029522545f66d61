"""The paraphrase score: that of a scorer of words such as the built-in one, or the cosine of both sides'
averaged word vectors (ParaNMT-50M, section 3.1), or of their vectors under a trained model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scorer import Column, Scale, Scorer, ScorerChoice, SentenceEncoder
from paraforge.corpus.scoring.cosine import cosine_of_rows, encoded_cosine
from paraforge.corpus.scoring.word_scorer import WordScorer

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs

# Bounds the memory of a block's sentence vectors: 2 x 4096 x 300 float32 are 10 MB.
_BLOCK_ROWS: Final = 4096


class ParaphraseScore(Scorer):
    """What a scorer of words gives (see :mod:`~paraforge.corpus.scoring.word_scorer`), or a cosine.

    Of word vectors it is the cosine of the mean vectors of the tokens of both sides: a token without a vector
    takes the unknown word's, where the table has one, otherwise it is left out; a side without any vector, or
    whose vectors sum to zero, has no score. Of a trained model it is the cosine of the vectors that it gives
    both texts.
    """

    columns = (
        Column(
            "paraphrase_score",
            pa.float32(),
            "how much the translation says what the reference says: the built-in scorer's 0.35 cosine of "
            "averaged word vectors + 0.65 F-score of aligned words, less for repetitions and other lengths; "
            "or the cosine of averaged word vectors, or of a model's",
            scale=Scale(-1, 1, 40),
            limits=(-1, 1),
        ),
    )
    place = 20

    def __init__(self, vectors: WordVectors | WordScorer | SentenceEncoder) -> None:
        self._vectors = vectors

    @classmethod
    def build(cls, choice: ScorerChoice) -> ParaphraseScore | None:
        """With the table or model that is chosen."""
        return None if choice.vectors is None else cls(choice.vectors)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, -1 to 1; null where a side has no vector."""
        tokens = (pairs.reference_tokens, pairs.translation_tokens)
        if isinstance(self._vectors, WordScorer):
            score = self._vectors.scores(*tokens)
            return {"paraphrase_score": pa.array(score, mask=np.isnan(score))}
        if not isinstance(self._vectors, WordVectors):
            return {"paraphrase_score": encoded_cosine(self._vectors.encode, pairs)}
        # The shard's own part of the table: small and in memory.
        table = self._vectors.of_words(pairs.reference_tokens.vocabulary)
        score = np.full(len(pairs), np.nan, dtype=np.float32)
        for first in range(0, len(pairs), _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, len(pairs))
            score[first:last] = cosine_of_rows(*(side.slice(first, last).sums(table) for side in tokens))
        return {"paraphrase_score": pa.array(score, mask=np.isnan(score))}
