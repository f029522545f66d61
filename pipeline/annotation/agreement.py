"""Agreement between annotators: Cohen's kappa, unweighted and linearly weighted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

GRADES = (1, 2, 3)


def cohen_kappa(first: Sequence[int], second: Sequence[int], *, linear: bool = False) -> float | None:
    """Cohen's kappa of two annotators over the same items (Cohen 1960; weighted, Cohen 1968).

    ``1 - sum(w * observed) / sum(w * expected)``, where ``expected`` is the outer product of how often each
    annotator gives each grade. The weight of two grades is 0 where they are equal, otherwise 1, or with
    ``linear`` their distance: between 1 and 3 people disagree twice as much as between 2 and 3.

    Args:
        first, second: grades 1-3 of n items, in the same order.

    Returns:
        At most 1; 0 is what chance gives. None where it is not defined: without items, or where both give
        one and the same grade throughout.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} grades of one annotator, {len(second)} of the other")
    number = len(GRADES)
    observed = np.zeros((number, number))
    np.add.at(observed, (np.asarray(first, int) - 1, np.asarray(second, int) - 1), 1)
    grades = np.arange(number)
    distance = np.abs(grades[:, None] - grades[None, :])
    weights = distance if linear else (distance > 0).astype(int)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / max(len(first), 1)
    disagreement = float((weights * expected).sum())
    return 1 - float((weights * observed).sum()) / disagreement if disagreement else None


def raw_agreement(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Share of items with equal grades, None without items."""
    if not first:
        return None
    return sum(one == other for one, other in zip(first, second, strict=True)) / len(first)
