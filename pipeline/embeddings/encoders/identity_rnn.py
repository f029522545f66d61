"""Identity-RNN: a linear recurrent network that starts as averaging (W16 3).

The paper also regularises it towards that start; here training.lambda_composition does, and is 0 by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from paraforge.embeddings.encoders.packing import pack
from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch


class IdentityRnnParameters(VectorParameters):
    """Recurrent network that starts as the mean (W16 3); lambda_composition, 0 by default, pulls to it."""

    kind: Literal["identity_rnn"] = "identity_rnn"

    def network(self, table: Tensor) -> IdentityRnn:
        """The network with these dimensions."""
        return IdentityRnn(table, self.unit)


class IdentityRnn(TableEncoder):
    """`h_t = W_x x_t + W_h h_(t-1) + b` with W_x = W_h = I and b = 0 at first; the last state divided by the
    length."""

    def __init__(self, table: Tensor, unit: str) -> None:
        super().__init__(table, unit)
        self.dimension = dimension = table.shape[1]
        self.input_weight = nn.Parameter(torch.eye(dimension, dtype=table.dtype))
        self.state_weight = nn.Parameter(torch.eye(dimension, dtype=table.dtype))
        self.bias = nn.Parameter(torch.zeros(dimension, dtype=table.dtype))

    def start(self, bound: float, generator: torch.Generator) -> None:
        """It is made as the mean."""

    def anchors(self) -> dict[str, Tensor]:
        """Identity and zero: what the parameters start as."""
        return {
            "input_weight": torch.eye(self.dimension, dtype=self.bias.dtype),
            "state_weight": torch.eye(self.dimension, dtype=self.bias.dtype),
            "bias": torch.zeros(self.dimension, dtype=self.bias.dtype),
        }

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """(sentences, dimension); 0 for a sentence without tokens."""
        bags = batch[self.unit]
        sentences = pack(bags)
        inputs = nn.functional.linear(sentences.vectors(self.rows(tables)).data, self.input_weight, self.bias)
        state = inputs.new_zeros(0)
        states = []
        for step, current in enumerate(inputs.split(sentences.batch_sizes.tolist())):
            state = current if step == 0 else current + state[: len(current)] @ self.state_weight.T
            states.append(state)
        if not states:
            return inputs.new_zeros(len(bags), self.dimension)
        last = sentences.last(torch.cat(states))
        return last / bags.lengths.clamp(min=1).unsqueeze(1)
