"""LSTM and BLSTM of ParaNMT-50M: the mean of the hidden states, with scrambling in training (its section
4)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from pipeline.embeddings.batches import TokenBatch
from pipeline.embeddings.encoders.packing import pack
from pipeline.embeddings.encoders.protocol import TableEncoder


class MeanLstm(TableEncoder):
    """One LSTM layer; bidirectional, the two directions' states are averaged (not concatenated) before the
    mean."""

    def __init__(
        self,
        table: Tensor,
        unit: str,
        output_dimension: int,
        bidirectional: bool = False,
        scramble: float = 0.3,
    ) -> None:
        super().__init__(table, unit)
        self.dimension = output_dimension
        self.scramble = scramble
        self.bidirectional = bidirectional
        self.cell = nn.LSTM(table.shape[1], output_dimension, bidirectional=bidirectional)

    def extra_repr(self) -> str:
        """For the fingerprint of a training run."""
        return f"scramble={self.scramble}"

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """(sentences, output dimension); 0 for a sentence without tokens."""
        sentences = pack(batch[self.unit])
        if not sentences:
            return self.table.new_zeros(len(batch[self.unit]), self.dimension)
        states = self.cell(sentences.vectors(self.rows(tables)))[0].data
        if self.bidirectional:
            states = (states[:, : self.dimension] + states[:, self.dimension :]) / 2
        return sentences.mean(states)
