"""Makes an encoder from its parameters."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from paraforge.base.errors import ConfigurationError
from paraforge.embeddings.encoders.combination import Addition, Concatenation
from paraforge.embeddings.encoders.parameters import (
    CombinationParameters,
    EncoderParameters,
    VectorParameters,
)
from paraforge.embeddings.encoders.protocol import Encoder, TableEncoder

MakeTable = Callable[[VectorParameters, int], Tensor]
"""What vectors are wanted, and a number that differs from table to table -> initial vectors."""


def build_encoder(parameters: EncoderParameters, make_table: MakeTable, seed: int) -> Encoder:
    """The encoder with fresh compositional parameters, uniform in +-1/sqrt(output dimension), biases 0.

    make_table: gives the initial vectors of each table. Raises ConfigurationError where the parts of a sum
        differ in dimension, or initial vectors are not of the stated one.
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
