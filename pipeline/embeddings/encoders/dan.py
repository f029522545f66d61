"""Deep averaging network: the mean of a sentence's vectors through non-linear layers (Iyyer 2015, W16 3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch, bag_mean

Activation = Literal["tanh", "relu"]


class DanParameters(VectorParameters):
    """Deep averaging network: the mean through one or two non-linear layers (W16 3)."""

    kind: Literal["dan"] = "dan"
    output_dimension: int = Field(300, ge=1, description="of a sentence's vector, and of each layer")
    layers: Literal[1, 2] = Field(1, description="number of layers")
    activation: Literal["tanh", "relu"] = Field("tanh", description="of each layer")

    def network(self, table: Tensor) -> DeepAverage:
        """The network with these dimensions."""
        return DeepAverage(table, self.unit, self.output_dimension, self.layers, self.activation)


class DeepAverage(TableEncoder):
    """`f(W_2 f(W_1 mean + b_1) + b_2)`, or its first layer alone."""

    def __init__(
        self,
        table: Tensor,
        unit: str,
        output_dimension: int,
        layers: int = 1,
        activation: Activation = "tanh",
    ) -> None:
        super().__init__(table, unit)
        self.dimension = output_dimension
        sizes = [table.shape[1]] + [output_dimension] * layers
        stack: list[nn.Module] = []
        for before, after in pairwise(sizes):
            stack += [nn.Linear(before, after), nn.Tanh() if activation == "tanh" else nn.ReLU()]
        self.layers = nn.Sequential(*stack)

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """(sentences, output dimension); 0 for a sentence without tokens."""
        bags = batch[self.unit]
        vectors = self.layers(bag_mean(self.rows(tables), bags))
        return vectors.masked_fill((bags.lengths == 0).unsqueeze(1), 0)
