"""Adam's steps over rows of a table, in place and in one pass, on a CPU; see `optimisers`.

np.divide is used because "/" checks each element for zero, which prevents vectorization.
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
    lasts: NDArray[np.int64],
    rows: NDArray[np.int64],
    gradient: NDArray[Any],
    step: int,
    new_mean: Any,
    old_square: Any,
    new_square: Any,
    rate: Any,
    correction: Any,
    epsilon: Any,
) -> None:
    """Apply a step of Adam to distinct rows; lasts: the last step applied to each row of the table."""
    for place in range(len(rows)):
        row = rows[place]
        lasts[row] = step
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
    lasts: NDArray[np.int64],
    rows: NDArray[np.int64],
    tails: NDArray[np.float64],
    powers: NDArray[np.float64],
    until: int,
    rate: Any,
    epsilon: Any,
) -> None:
    """Apply the steps that rows missed up to step `until`. tails, powers: see `_MissedSteps.factors`."""
    factors = np.empty(3, table.dtype)  # in the table's precision
    for row in rows:
        missed = until - lasts[row]
        if not missed:
            continue
        factors[0] = tails[lasts[row]] - powers[0, missed] * tails[until]
        factors[1:] = powers[1:, missed]
        pace, first, second = rate * factors[0], factors[1], factors[2]
        for column in range(table.shape[1]):
            mean, square = means[row, column], squares[row, column]
            table[row, column] -= np.divide(pace * mean, np.sqrt(square) + epsilon)
            means[row, column] = first * mean
            squares[row, column] = second * square
        lasts[row] = until
