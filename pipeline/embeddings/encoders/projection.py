"""Projection: the mean of a sentence's vectors through a linear layer (W16 Eq. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch, bag_mean


class ProjectionParameters(VectorParameters):
    """The mean through a linear layer (W16 Eq. 2)."""

    kind: Literal["projection"] = "projection"
    output_dimension: int = Field(300, ge=1, description="of a sentence's vector")

    def network(self, table: Tensor) -> Projection:
        """The network with these dimensions."""
        return Projection(table, self.unit, self.output_dimension)


class Projection(TableEncoder):
    """`W_p mean + b`."""

    def __init__(self, table: Tensor, unit: str, output_dimension: int) -> None:
        super().__init__(table, unit)
        self.dimension = output_dimension
        self.linear = nn.Linear(table.shape[1], output_dimension)

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """(sentences, output dimension); 0 for a sentence without tokens."""
        bags = batch[self.unit]
        vectors = self.linear(bag_mean(self.rows(tables), bags))
        return vectors.masked_fill((bags.lengths == 0).unsqueeze(1), 0)
