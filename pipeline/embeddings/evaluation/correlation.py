"""Pearson's and Spearman's correlation x 100, as the papers report them."""

import numpy as np
import numpy.typing as npt


def pearson(gold: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> float | None:
    """Pearson's r x 100, -100 to 100; None for fewer than two pairs, or where either side does not differ."""
    from scipy.stats import pearsonr

    return None if _is_constant(gold, values) else 100 * float(pearsonr(gold, values).statistic)


def spearman(gold: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> float | None:
    """Spearman's rho x 100, equal values having their mean rank; None as for :func:`pearson`."""
    from scipy.stats import spearmanr

    return None if _is_constant(gold, values) else 100 * float(spearmanr(gold, values).statistic)


def mean(values: list[float | None]) -> float | None:
    """Unweighted mean; None where one of the values is, or there is none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def _is_constant(gold: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> bool:
    return len(gold) < 2 or bool(np.ptp(gold) == 0) or bool(np.ptp(values) == 0)
