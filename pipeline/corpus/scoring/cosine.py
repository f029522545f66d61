"""Cosines of the rows of two matrices, and of both sides of pairs by word vectors or any text encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.text.tokens import TokenColumn

if TYPE_CHECKING:
    from paraforge.corpus.scoring.pairs import Pairs

# Limits the memory of embeddings: 2 x 4096 x 1024 float32 are 32 MB.
_BLOCK_ROWS: Final = 4096
# The vector sums of this many pairs stay in the processor's cache.
_CACHED_ROWS: Final = 2048


def cosine_of_rows(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the cosine of row k of `left` and row k of `right`: rows, float32, -1 to 1.

    NaN if a row is all zeros or not finite.

    left: rows x dimension, any floating type; products are summed in double precision.
    right: of the same shape, otherwise ValueError.
    """
    check_rows(left, right)
    product = np.einsum("ij,ij->i", left, right, dtype=np.float64)
    left_square = np.einsum("ij,ij->i", left, left, dtype=np.float64)
    right_square = np.einsum("ij,ij->i", right, right, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = product / (np.sqrt(left_square) * np.sqrt(right_square))
    cosine[~np.isfinite(cosine)] = np.nan
    return np.clip(cosine, -1, 1).astype(np.float32)


def check_rows(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> None:
    """Raise ValueError unless both are matrices of the same shape, because numpy would broadcast a single
    row."""
    if left.ndim != 2 or left.shape != right.shape:
        raise ValueError(
            f"vectors of shapes {left.shape} and {right.shape}: pass two lists of the same length"
        )


def averaged_cosine(
    references: TokenColumn, translations: TokenColumn, vectors: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return the cosine of the sums of both sides' word vectors: pairs, float32; NaN for a sum of zeros.

    vectors: of the words of both sides' vocabulary, (words, dimension).
    """
    cosine = np.empty(len(references), dtype=np.float32)
    for first in range(0, len(cosine), _CACHED_ROWS):
        last = first + _CACHED_ROWS
        sides = (side.slice(first, last).sums(vectors) for side in (references, translations))
        cosine[first:last] = cosine_of_rows(*sides)
    return cosine


def encoded_cosine(encode: Callable[[Any], npt.NDArray[np.float32]], pairs: Pairs) -> Any:
    """Return the cosine of each pair, a pyarrow float32 array, -1 to 1; null if a side's vector is all zeros.

    encode: function from a pyarrow string array of distinct texts to vectors, (texts, dimension).
    """
    cosine = np.full(len(pairs), np.nan, dtype=np.float32)
    for first in range(0, len(pairs), _BLOCK_ROWS):
        sides = []
        for texts in (pairs.reference, pairs.translation):
            distinct = texts.slice(first, _BLOCK_ROWS).dictionary_encode()
            sides.append(encode(distinct.dictionary)[distinct.indices.to_numpy()])
        cosine[first : first + _BLOCK_ROWS] = cosine_of_rows(*sides)
    return pa.array(cosine, mask=np.isnan(cosine))
