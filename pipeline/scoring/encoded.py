"""Cosine of both sides of pairs under whatever gives a text a vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.scoring.cosine import cosine_of_rows

if TYPE_CHECKING:
    from paraforge.scoring.pairs import Pairs

# Bounds the memory of embeddings: 2 x 4096 x 1024 float32 are 32 MB.
_BLOCK_ROWS: Final = 4096


def encoded_cosine(encode: Callable[[Any], npt.NDArray[np.float32]], pairs: Pairs) -> Any:
    """Cosine of each pair, a pyarrow float32 array, -1 to 1; null where a side has no direction.

    encode: vectors of the texts of a pyarrow string array, (texts, dimension); called with distinct texts.
    """
    cosine = np.full(len(pairs), np.nan, dtype=np.float32)
    for first in range(0, len(pairs), _BLOCK_ROWS):
        sides = []
        for texts in (pairs.reference, pairs.translation):
            distinct = texts.slice(first, _BLOCK_ROWS).dictionary_encode()
            sides.append(encode(distinct.dictionary)[distinct.indices.to_numpy()])
        cosine[first : first + _BLOCK_ROWS] = cosine_of_rows(*sides)
    return pa.array(cosine, mask=np.isnan(cosine))
