"""Tables of vectors in fewer bits: eight a number, or its sign alone, with one scale a row."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

Precision = Literal["float32", "int8", "binary"]
_LARGEST = 127


def scale_name(name: str) -> str:
    """What the scales of a table are called."""
    return f"{name}.scale"


def quantised(name: str, table: Tensor, precision: Precision) -> dict[str, Tensor]:
    """A table, (rows, dimension), as tensors: its numbers, and the scales of its rows, float32 (rows,).

    int8: numbers times the scale are off by half a scale at most, which is the row's largest number / 127.
    binary: signs, eight a byte, the scale being the mean absolute number: the nearest such row (Rastegari et
        al. 2016).
    """
    rows = table.detach().cpu()
    if precision == "float32":
        return {name: rows}
    if precision == "int8":
        scales = rows.abs().amax(1) / _LARGEST
        numbers = (rows / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8)
    else:
        scales = rows.abs().mean(1)
        numbers = torch.from_numpy(np.packbits(rows.numpy() >= 0, axis=1))
    return {name: numbers, scale_name(name): scales}


def expected_tensors(name: str, table: Tensor, precision: Precision) -> dict[str, Tensor]:
    """Tensors of the shapes and types that `quantised` gives, of no particular content."""
    count, dimension = table.shape
    if precision == "float32":
        return {name: table}
    numbers = torch.empty(count, dimension, dtype=torch.int8)
    if precision == "binary":
        numbers = torch.empty(count, (dimension + 7) // 8, dtype=torch.uint8)
    return {name: numbers, scale_name(name): torch.empty(count)}


def restored(numbers: Tensor, scales: Tensor, dimension: int) -> Tensor:
    """What `quantised` made of a table, (rows, dimension) float32."""
    if numbers.dtype == torch.uint8:
        bits = np.unpackbits(numbers.numpy(), axis=1)[:, :dimension]
        numbers = torch.from_numpy(2 * bits.astype(np.int8) - 1)
    return numbers * scales[:, None]
