"""Word and Trigram: the mean of a sentence's vectors (W16 Eq. 1; ParaNMT-50M 4)."""

from collections.abc import Mapping

from torch import Tensor

from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch, bag_mean


class Average(TableEncoder):
    """Mean of the vectors of words, character trigrams or SentencePiece pieces; no compositional
    parameters."""

    def __init__(self, table: Tensor, unit: str = "word") -> None:
        super().__init__(table, unit)
        self.dimension = table.shape[1]

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """The zero vector for a sentence without tokens."""
        return bag_mean(self.rows(tables), batch[self.unit])
