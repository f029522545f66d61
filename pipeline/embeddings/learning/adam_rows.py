"""Adam's steps over rows of a table, in place and in one pass, on a CPU; see `optimisers`.

np.divide, since "/" has to look for a zero at each element and keeps a loop from being vectorised.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paraforge.base.compiled import compiled


@compiled
def move_rows(
    table: NDArray[Any],
    means: NDArray[Any],
    squares: NDArray[Any],
    rows: NDArray[np.int64],
    gradient: NDArray[Any],
    new_mean: Any,
    old_square: Any,
    new_square: Any,
    rate: Any,
    correction: Any,
    epsilon: Any,
) -> None:
    """Apply a step of Adam to distinct rows."""
    for place in range(len(rows)):
        row = rows[place]
        for column in range(gradient.shape[1]):
            slope = gradient[place, column]
            mean = means[row, column] + new_mean * (slope - means[row, column])
            square = old_square * squares[row, column] + new_square * slope * slope
            means[row, column] = mean
            squares[row, column] = square
            table[row, column] -= np.divide(rate * mean, np.divide(np.sqrt(square), correction) + epsilon)


@compiled
def catch_rows_up(
    table: NDArray[Any],
    means: NDArray[Any],
    squares: NDArray[Any],
    rows: NDArray[np.int64],
    factor: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    rate: Any,
    epsilon: Any,
) -> None:
    """Apply the steps that distinct rows missed; factor, first and second are those of each row."""
    for place in range(len(rows)):
        row = rows[place]
        pace = rate * factor[place]
        for column in range(table.shape[1]):
            mean, square = means[row, column], squares[row, column]
            table[row, column] -= np.divide(pace * mean, np.sqrt(square) + epsilon)
            means[row, column] = first[place] * mean
            squares[row, column] = second[place] * square
