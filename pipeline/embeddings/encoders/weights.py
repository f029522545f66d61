"""One scalar a word: the mean of fixed vectors, each times a trained weight (W16 section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.encoders.protocol import TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch, bag_mean

WEIGHTS = "weights"


class WeightsParameters(VectorParameters):
    """Mean of fixed vectors, each times its unit's weight, which starts at 1; choose a learning rate for
    numbers of that size."""

    kind: Literal["weights"] = "weights"
    fixed: bool = Field(True, description="whether the vectors stay as they start")

    def network(self, table: Tensor) -> WeightedAverage:
        """All weights 1."""
        return WeightedAverage(table, self.unit)


class WeightedAverage(TableEncoder):
    """`sum a_w x_w / n` over a sentence's n tokens; `weights`: a, (vocabulary, 1)."""

    def __init__(self, table: Tensor, unit: str) -> None:
        super().__init__(table, unit)
        self.dimension = table.shape[1]
        self.weights = nn.Parameter(torch.ones(len(table), 1))

    def table_units(self) -> dict[str, str]:
        """Vectors and weights."""
        return {**super().table_units(), WEIGHTS: self.unit}

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """The zero vector for a sentence without tokens."""
        weights = self.weights if tables is None else tables[WEIGHTS]
        return bag_mean(self.rows(tables) * weights, batch[self.unit])
