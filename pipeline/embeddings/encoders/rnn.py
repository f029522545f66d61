"""RNN: a simple recurrent network, its last state (W16 Eq. 3-4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from paraforge.embeddings.encoders.packing import in_full_precision, pack
from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch


class RnnParameters(VectorParameters):
    """Recurrent network, last state (W16 Eq. 3-4)."""

    kind: Literal["rnn"] = "rnn"
    output_dimension: int = Field(300, ge=1, description="of the state")
    activation: Literal["tanh", "relu"] = Field("tanh", description="of the state")
    recurrence: Literal["identity", "random"] = Field(
        "identity",
        description="what W_h starts as; random, as in Wieting 2016, knows the last words alone, and all "
        "sentences become alike",
    )

    def network(self, table: Tensor) -> LastStateRnn:
        """The network with these dimensions."""
        return LastStateRnn(table, self.unit, self.output_dimension, self.activation, self.recurrence)


class LastStateRnn(TableEncoder):
    """`h_t = f(W_x x_t + W_h h_(t-1) + b)`; the sentence is the state after its last token."""

    def __init__(
        self,
        table: Tensor,
        unit: str,
        output_dimension: int,
        activation: Literal["tanh", "relu"] = "tanh",
        recurrence: Literal["identity", "random"] = "identity",
    ) -> None:
        super().__init__(table, unit)
        self.dimension = output_dimension
        self.recurrence = recurrence
        self.cell = nn.RNN(table.shape[1], output_dimension, nonlinearity=activation)

    def start(self, bound: float, generator: torch.Generator) -> None:
        """With the identity as W_h a fresh state has all words (Le et al. 2015)."""
        super().start(bound, generator)
        if self.recurrence == "identity":
            nn.init.eye_(self.get_parameter("cell.weight_hh_l0"))

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """(sentences, output dimension); 0 for a sentence without tokens."""
        sentences = pack(batch[self.unit])
        if not sentences:
            return self.table.new_zeros(len(batch[self.unit]), self.dimension)
        return sentences.last(in_full_precision(self.cell, sentences.vectors(self.rows(tables))))
