"""Cosine of the rows of two matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def cosine_of_rows(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Cosine of row k of `left` and row k of `right`: rows, float32, -1 to 1.

    NaN where a row has no direction: all zeros, or not finite.

    left: rows x dimension, any floating type; products are summed in double precision.
    right: of the same shape.
    """
    product = np.einsum("ij,ij->i", left, right, dtype=np.float64)
    left_square = np.einsum("ij,ij->i", left, left, dtype=np.float64)
    right_square = np.einsum("ij,ij->i", right, right, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = product / (np.sqrt(left_square) * np.sqrt(right_square))
    cosine[~np.isfinite(cosine)] = np.nan
    return np.clip(cosine, -1, 1).astype(np.float32)
