"""The base class of encoders: a module that turns a batch of token sequences into one vector per sentence."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from paraforge.embeddings.learning.batches import TokenBatch

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
