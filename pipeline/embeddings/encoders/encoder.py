"""The base class of encoders, which turn a batch of token sequences into one vector per sentence; sums and
concatenations of several (ParaNMT-50M 4); and an encoder from its parameters."""

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
from paraforge.embeddings.learning.batches import TokenBatch

MakeTable = Callable[[VectorParameters, int], Tensor]
"""Takes the parameters of a table and its number; returns initial vectors, (vocabulary, dimension)."""

TABLE = "table"


class Encoder(nn.Module):
    """Base of all encoders.

    A *table* is a parameter with a row for each unit of a vocabulary; all others are compositional. Training
    passes to `forward` only the rows that a mini-batch uses, so the gradient of a table is never as large as
    the table.

    dimension: dimension of a sentence's vector.
    scramble: probability that training shuffles a sentence's tokens before this encoder sees them.
    """

    dimension: int
    scramble: float = 0.0

    def forward(self, batch: TokenBatch, tables: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return sentence vectors, (sentences, dimension).

        tables: by parameter name, the rows that the batch's ids refer to; None for the encoder's whole
            tables.
        """
        raise NotImplementedError

    def table_units(self) -> dict[str, str]:
        """Return the unit for the rows of each table, by the table's parameter name."""
        raise NotImplementedError

    def composition(self) -> dict[str, nn.Parameter]:
        """Return the compositional parameters by name."""
        tables = self.table_units()
        return {name: value for name, value in self.named_parameters() if name not in tables}

    def tables(self) -> dict[str, nn.Parameter]:
        """Return the tables by name."""
        names = self.table_units()
        return {name: value for name, value in self.named_parameters() if name in names}

    def scrambled_units(self) -> dict[str, float]:
        """Return by unit the probability that training shuffles a sentence's tokens."""
        return dict.fromkeys(self.units(), self.scramble) if self.scramble else {}

    def units(self) -> tuple[str, ...]:
        """Return the sorted units that it reads."""
        return tuple(sorted(set(self.table_units().values())))

    def start(self, bound: float, generator: torch.Generator) -> None:
        """Initialize compositional parameters: uniform in [-bound, bound], in the order of their names.

        Biases are 0, because a large one would make all sentences' vectors similar.
        """
        with torch.no_grad():
            for name, parameter in sorted(self.composition().items()):
                if name.rpartition(".")[2].startswith("bias"):
                    parameter.zero_()
                else:
                    parameter.uniform_(-bound, bound, generator=generator)

    def anchors(self) -> dict[str, Tensor]:
        """Return values to which training.lambda_composition pulls compositional parameters, instead of to
        zero."""
        return {}


class TableEncoder(Encoder):
    """An encoder over the vectors of one unit, `table`: (vocabulary, vector dimension).

    fixed: whether the vectors are not trained.
    """

    fixed = False

    def __init__(self, table: Tensor, unit: str) -> None:
        super().__init__()
        self.table = nn.Parameter(table)
        self.unit = unit

    def table_units(self) -> dict[str, str]:
        """Return its only table."""
        return {TABLE: self.unit}

    def rows(self, tables: Mapping[str, Tensor] | None) -> Tensor:
        """Return the rows that the batch's ids refer to."""
        rows = self.table if tables is None else tables[TABLE]
        return rows.detach() if self.fixed else rows


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
