"""The paraphrase score: cosine of both sides' averaged word vectors (ParaNMT-50M, section 3.1), or of their
vectors under a trained model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.scoring.cosine import cosine_of_rows
from paraforge.scoring.encoded import encoded_cosine
from paraforge.scoring.scorer import Scorer, ScorerChoice, SentenceEncoder
from paraforge.scoring.vectors import FloatArray, WordVectors
from paraforge.shards.column import column

if TYPE_CHECKING:
    from paraforge.scoring.pairs import Pairs
    from paraforge.text.tokens import TokenColumn

# Bounds the memory of a block's sentence vectors: 2 x 4096 x 300 float32 are 10 MB.
_BLOCK_ROWS: Final = 4096


class ParaphraseScore(Scorer):
    """Cosine of the mean vectors of the tokens of the reference and of the translation.

    Of word vectors: a token without a vector takes the unknown word's, where the table has one, otherwise it
    is left out. A side without any vector, or whose vectors sum to zero, has no score. Of a trained model:
    the cosine of the vectors that it gives both texts.
    """

    fields = (
        column(
            "paraphrase_score",
            pa.float32(),
            "cosine of the averaged paragram-phrase vectors of both sides, or of a model's",
        ),
    )
    place = 20

    def __init__(self, vectors: WordVectors | SentenceEncoder) -> None:
        self._vectors = vectors

    @classmethod
    def build(cls, choice: ScorerChoice) -> ParaphraseScore:
        """With the table or model that is chosen."""
        return cls(choice.vectors)

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """float32, -1 to 1; null where a side has no vector."""
        if not isinstance(self._vectors, WordVectors):
            return {"paraphrase_score": encoded_cosine(self._vectors.encode, pairs)}
        rows = self._vectors.rows(pairs.reference_tokens.vocabulary)
        # The shard's own part of the table, with a row of zeros for tokens to leave out: small and in memory.
        table_rows, compact = np.unique(rows, return_inverse=True)
        table = np.array(self._vectors.vectors[np.maximum(table_rows, 0)])
        table[table_rows < 0] = 0
        score = np.full(len(pairs), np.nan, dtype=np.float32)
        for first in range(0, len(pairs), _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, len(pairs))
            score[first:last] = cosine_of_rows(
                _sums(pairs.reference_tokens, first, last, compact, table),
                _sums(pairs.translation_tokens, first, last, compact, table),
            )
        return {"paraphrase_score": pa.array(score, mask=np.isnan(score))}


def _sums(
    tokens: TokenColumn, first: int, last: int, compact: npt.NDArray[np.int64], table: FloatArray
) -> FloatArray:
    """Sum of the vectors of each row's tokens: rows x dimension. (A cosine of sums is that of means.)"""
    from scipy.sparse import csr_array

    offsets = tokens.offsets[first : last + 1]
    columns = compact[tokens.ids[offsets[0] : offsets[-1]]].astype(np.int32)
    ones = np.ones(len(columns), dtype=np.float32)
    counts = csr_array((ones, columns, offsets - offsets[0]), shape=(last - first, len(table)))
    return counts @ table
