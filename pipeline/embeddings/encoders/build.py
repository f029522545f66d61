"""Builds an encoder from its parameters; several can be added or concatenated and trained jointly
(ParaNMT-50M 4)."""

import math
from collections.abc import Callable, Mapping, Sequence

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
"""What vectors are wanted, and a number that differs from table to table -> initial vectors."""


class Combination(Encoder):
    """Base of sums and concatenations: parts read their own units and have their own tables."""

    def __init__(self, parts: Sequence[Encoder]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def encoders(self) -> list[Encoder]:
        """Return the parts."""
        return [part for part in self.parts if isinstance(part, Encoder)]

    def table_units(self) -> dict[str, str]:
        """Return the parts' tables."""
        return {
            f"parts.{number}.{name}": unit
            for number, part in enumerate(self.encoders())
            for name, unit in part.table_units().items()
        }

    def anchors(self) -> dict[str, Tensor]:
        """Return the parts' anchors."""
        return {
            f"parts.{number}.{name}": value
            for number, part in enumerate(self.encoders())
            for name, value in part.anchors().items()
        }

    def scrambled_units(self) -> dict[str, float]:
        """Return each unit's probability of shuffling, the highest of all parts; it does not affect parts
        that average."""
        rates: dict[str, float] = {}
        for part in self.encoders():
            for unit, rate in part.scrambled_units().items():
                rates[unit] = max(rate, rates.get(unit, 0.0))
        return rates

    def vectors_of_parts(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None) -> list[Tensor]:
        """Return each part's sentence vectors."""
        vectors = []
        for number, part in enumerate(self.encoders()):
            prefix = f"parts.{number}."
            own = None
            if tables is not None:
                own = {name: tables[prefix + name] for name in part.table_units()}
            vectors.append(part(batch, own))
        return vectors


class Addition(Combination):
    """The sum of the parts' vectors; ValueError if their dimensions differ."""

    def __init__(self, parts: Sequence[Encoder]) -> None:
        super().__init__(parts)
        dimensions = {part.dimension for part in parts}
        if len(dimensions) != 1:
            raise ValueError(f"encoders of dimensions {sorted(dimensions)} cannot be added")
        self.dimension = dimensions.pop()

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return (sentences, dimension)."""
        first, *others = self.vectors_of_parts(batch, tables)
        for vectors in others:
            first = first + vectors
        return first


class Concatenation(Combination):
    """The concatenation of the parts' vectors."""

    def __init__(self, parts: Sequence[Encoder]) -> None:
        super().__init__(parts)
        self.dimension = sum(part.dimension for part in parts)

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return (sentences, sum of the dimensions)."""
        return torch.cat(self.vectors_of_parts(batch, tables), dim=1)


def build_encoder(parameters: EncoderParameters, make_table: MakeTable, seed: int) -> Encoder:
    """Return the encoder with fresh compositional parameters, uniform in +-1/sqrt(output dimension), biases
    0.

    make_table: returns the initial vectors of each table. Raises ConfigurationError if the parts of a sum
        differ in dimension, or initial vectors do not have the stated one.
    """
    generator = torch.Generator().manual_seed(seed)
    number = iter(range(1 << 30))

    def build(part: EncoderParameters) -> Encoder:
        if isinstance(part, CombinationParameters):
            parts = [build(inner) for inner in part.parts]
            try:
                return Addition(parts) if part.kind == "addition" else Concatenation(parts)
            except ValueError as error:
                raise ConfigurationError([f"encoder: {error}"]) from error
        table = make_table(part, next(number))
        if table.shape[1] != part.dimension:
            raise ConfigurationError(
                [
                    f"encoder: dimension {part.dimension}, the initial vectors have {table.shape[1]}: "
                    f"set encoder.dimension={table.shape[1]}"
                ]
            )
        encoder = part.network(table)
        if isinstance(encoder, TableEncoder):
            encoder.fixed = part.fixed
        encoder.start(1 / math.sqrt(encoder.dimension), generator)
        return encoder

    return build(parameters)
