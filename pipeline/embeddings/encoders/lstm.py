"""LSTM and BLSTM of ParaNMT-50M: the mean of the hidden states, with scrambling in training (its section
4)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from paraforge.embeddings.encoders.packed_lstm import packed_lstm
from paraforge.embeddings.encoders.packing import in_full_precision, pack
from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.learning.batches import TokenBatch


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
        vectors = sentences.vectors(self.rows(tables))
        if self.table.device.type == "cpu":
            return sentences.mean(self._states(vectors))
        states = in_full_precision(self.cell, vectors)
        if self.bidirectional:
            states = (states[:, : self.dimension] + states[:, self.dimension :]) / 2
        return sentences.mean(states)

    def _states(self, vectors: PackedSequence) -> Tensor:
        """What `self.cell` gives, faster than torch does it on a CPU; of two directions the mean."""
        sizes = vectors.batch_sizes.tolist()
        products = torch.bfloat16 if torch.is_autocast_enabled("cpu") else None
        directions = []
        for suffix in ("", "_reverse")[: 1 + self.bidirectional]:
            weight_input, weight_state, bias_input, bias_state = (
                getattr(self.cell, f"{name}_l0{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            bias = bias_input + bias_state
            directions.append(
                packed_lstm(vectors.data, sizes, weight_input, weight_state, bias, suffix != "", products)
            )
        return directions[0] if len(directions) == 1 else (directions[0] + directions[1]) / 2
