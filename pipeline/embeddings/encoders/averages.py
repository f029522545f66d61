"""Averaging encoders: the mean of a sentence's vectors, perhaps weighted or passed through layers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from paraforge.embeddings.encoders.encoder import TableEncoder
from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.learning.batches import TokenBatch, bag_mean


class Average(TableEncoder):
    """Mean of the vectors of words, character trigrams or SentencePiece pieces; no compositional
    parameters."""

    def __init__(self, table: Tensor, unit: str = "word") -> None:
        super().__init__(table, unit)
        self.dimension = table.shape[1]

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return the zero vector for a sentence without tokens."""
        return bag_mean(self.rows(tables), batch[self.unit])


WEIGHTS = "weights"


class WeightsParameters(VectorParameters):
    """Mean of fixed vectors, each multiplied by its unit's trained weight, which starts at 1; choose a
    learning rate for numbers of that size."""

    kind: Literal["weights"] = "weights"
    fixed: bool = Field(True, description="keep the vectors as they start")

    def network(self, table: Tensor) -> WeightedAverage:
        """Return weights of 1."""
        return WeightedAverage(table, self.unit)


class WeightedAverage(TableEncoder):
    """`sum a_w x_w / n` over a sentence's n tokens; `weights`: a, (vocabulary, 1)."""

    def __init__(self, table: Tensor, unit: str) -> None:
        super().__init__(table, unit)
        self.dimension = table.shape[1]
        self.weights = nn.Parameter(torch.ones(len(table), 1))

    def table_units(self) -> dict[str, str]:
        """Return vectors and weights."""
        return {**super().table_units(), WEIGHTS: self.unit}

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return the zero vector for a sentence without tokens."""
        weights = self.weights if tables is None else tables[WEIGHTS]
        return bag_mean(self.rows(tables) * weights, batch[self.unit])


class ProjectionParameters(VectorParameters):
    """The mean passed through a linear layer (W16 Eq. 2)."""

    kind: Literal["projection"] = "projection"
    output_dimension: int = Field(300, ge=1, description="dimension of a sentence's vector")

    def network(self, table: Tensor) -> Projection:
        """Return the network with these dimensions."""
        return Projection(table, self)


class Projection(TableEncoder):
    """`W_p mean + b`."""

    def __init__(self, table: Tensor, parameters: ProjectionParameters) -> None:
        super().__init__(table, parameters.unit)
        self.dimension = parameters.output_dimension
        self.linear = nn.Linear(table.shape[1], self.dimension)

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return (sentences, output dimension); zeros for a sentence without tokens."""
        bags = batch[self.unit]
        vectors = self.linear(bag_mean(self.rows(tables), bags))
        return vectors.masked_fill((bags.lengths == 0).unsqueeze(1), 0)


class DanParameters(VectorParameters):
    """Deep averaging network: the mean passed through one or two non-linear layers (W16 3)."""

    kind: Literal["dan"] = "dan"
    output_dimension: int = Field(300, ge=1, description="dimension of a sentence's vector and of each layer")
    layers: int = Field(1, ge=1, le=2, description="number of layers")
    activation: Literal["tanh", "relu"] = Field("tanh", description="activation function of each layer")

    def network(self, table: Tensor) -> DeepAverage:
        """Return the network with these dimensions."""
        return DeepAverage(table, self)


class DeepAverage(TableEncoder):
    """`f(W_2 f(W_1 mean + b_1) + b_2)`, or its first layer alone."""

    def __init__(self, table: Tensor, parameters: DanParameters) -> None:
        super().__init__(table, parameters.unit)
        self.dimension = parameters.output_dimension
        sizes = [table.shape[1]] + [self.dimension] * parameters.layers
        activation = nn.Tanh if parameters.activation == "tanh" else nn.ReLU
        stack: list[nn.Module] = []
        for before, after in pairwise(sizes):
            stack += [nn.Linear(before, after), activation()]
        self.layers = nn.Sequential(*stack)

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return (sentences, output dimension); zeros for a sentence without tokens."""
        bags = batch[self.unit]
        vectors = self.layers(bag_mean(self.rows(tables), bags))
        return vectors.masked_fill((bags.lengths == 0).unsqueeze(1), 0)
