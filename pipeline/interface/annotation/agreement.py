"""Agreement between annotators: Cohen's kappa, unweighted and linearly weighted, by scikit-learn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from paraforge.base.errors import require

GRADES = (1, 2, 3)


def cohen_kappa(first: Sequence[int], second: Sequence[int], *, linear: bool = False) -> float | None:
    """Cohen's kappa of two annotators over the same items (Cohen 1960; weighted, Cohen 1968).

    first, second: grades 1-3 of n items, in the same order.
    linear: weigh a disagreement by its distance: between 1 and 3 people disagree twice as much as between 2
        and 3.

    Returns at most 1; 0 is what chance gives. None where it is not defined: without items, or where both give
    one and the same grade throughout. Raises MissingPackageError: scikit-learn is not installed.
    """
    if not first and not second:
        return None
    metrics = require("sklearn.metrics", "annotate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where both give one grade, 0 / 0
        kappa = float(
            metrics.cohen_kappa_score(first, second, labels=GRADES, weights="linear" if linear else None)
        )
    return None if math.isnan(kappa) else kappa
