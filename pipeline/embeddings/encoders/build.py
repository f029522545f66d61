"""Builds an encoder from its parameters; several can be added or concatenated and trained jointly
(ParaNMT-50M 4)."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Literal

import torch
from torch import Tensor, nn

from paraforge.base.errors import ConfigurationError
from paraforge.embeddings.encoders.parameters import (
    CombinationParameters,
    EncoderParameters,
    VectorParameters,
)
from paraforge.embeddings.encoders.protocol import Encoder, TableEncoder
from paraforge.embeddings.learning.batches import TokenBatch

MakeTable = Callable[[VectorParameters, int], Tensor]
"""Takes the parameters of a table and its number; returns initial vectors, (vocabulary, dimension)."""


class Combination(Encoder):
    """The sum or the concatenation of several encoders' vectors. Parts read their own units and have their
    own tables. Raises ConfigurationError if parts to add differ in dimension."""

    def __init__(self, parts: Sequence[Encoder], kind: Literal["addition", "concatenation"]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.kind = kind
        dimensions = [part.dimension for part in parts]
        if kind == "addition" and len(set(dimensions)) != 1:
            problem = f"encoder: encoders of dimensions {sorted(set(dimensions))} cannot be added"
            raise ConfigurationError([problem])
        self.dimension = dimensions[0] if kind == "addition" else sum(dimensions)

    def extra_repr(self) -> str:
        """Describe the settings, for the fingerprint of a training run."""
        return self.kind

    def encoders(self) -> dict[str, Encoder]:
        """Return the parts by the prefix of their parameters' names."""
        return {f"parts.{n}.": part for n, part in enumerate(self.parts) if isinstance(part, Encoder)}

    def table_units(self) -> dict[str, str]:
        """Return the parts' tables."""
        return {
            prefix + name: unit
            for prefix, part in self.encoders().items()
            for name, unit in part.table_units().items()
        }

    def anchors(self) -> dict[str, Tensor]:
        """Return the parts' anchors."""
        return {
            prefix + name: value
            for prefix, part in self.encoders().items()
            for name, value in part.anchors().items()
        }

    def scrambled_units(self) -> dict[str, float]:
        """Return each unit's probability of shuffling: the highest of all parts. It has no effect on
        averages."""
        rates: dict[str, float] = {}
        for part in self.encoders().values():
            for unit, rate in part.scrambled_units().items():
                rates[unit] = max(rate, rates.get(unit, 0.0))
        return rates

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return (sentences, dimension)."""
        vectors = []
        for prefix, part in self.encoders().items():
            own = None if tables is None else {name: tables[prefix + name] for name in part.table_units()}
            vectors.append(part(batch, own))
        return reduce(torch.add, vectors) if self.kind == "addition" else torch.cat(vectors, dim=1)


def build_encoder(parameters: EncoderParameters, make_table: MakeTable, seed: int) -> Encoder:
    """Return the encoder with fresh compositional parameters, uniform in +-1/sqrt(output dimension), biases
    0.

    make_table: returns the initial vectors of each table. Raises ConfigurationError if the parts of a sum
        differ in dimension, or initial vectors do not have the stated one.
    """
    generator = torch.Generator().manual_seed(seed)
    number = iter(range(1 << 30))

    def build(part: EncoderParameters, key: str) -> Encoder:
        if isinstance(part, CombinationParameters):
            parts = [build(inner, f"{key}.parts.{n}") for n, inner in enumerate(part.parts)]
            return Combination(parts, part.kind)
        table = make_table(part, next(number))
        if table.shape[1] != part.dimension:
            raise ConfigurationError(
                [
                    f"{key}: dimension {part.dimension}, but the initial vectors have {table.shape[1]}: "
                    f"set {key}.dimension={table.shape[1]}"
                ]
            )
        encoder = part.network(table)
        if isinstance(encoder, TableEncoder):
            encoder.fixed = part.fixed
        encoder.start(1 / math.sqrt(encoder.dimension), generator)
        return encoder

    return build(parameters, "encoder")
