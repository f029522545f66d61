"""Sums of rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from paraforge.base.compiled import compiled


@compiled
def sums_of_rows(ids: Any, offsets: Any, table: Any) -> Any:
    """Row k is the sum of the table's rows ids[offsets[k]] to ids[offsets[k + 1] - 1], in this order."""
    sums = np.zeros((len(offsets) - 1, table.shape[1]), dtype=table.dtype)
    for row in range(len(sums)):
        total = sums[row]
        for place in range(offsets[row], offsets[row + 1]):
            vector = table[ids[place]]
            for k in range(len(total)):
                total[k] += vector[k]
    return sums
