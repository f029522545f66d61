"""The scale on which a score is shown: its bins, and the steps of its handles, from the scores themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.corpus.scorer import Scale

_FEWEST_BINS = 40
# Outside of these quantiles are outliers: the first and the last bin have them.
_QUANTILES = (0.001, 0.999)
_ROUND = (5.0, 2.0, 1.0)


def scale_of(values: npt.NDArray[Any], low: float, high: float, integer: bool) -> Scale:
    """A scale with round edges, 40 to 200 bins; scores within 0 and 1 get the whole of that range.

    values: a sample of the scores, none of them missing. low, high: the smallest and the largest of all.
    integer: whether scores are whole numbers: then a bin is one or several of them.
    """
    if integer:
        least, most = math.floor(low), math.floor(np.quantile(values, _QUANTILES[1])) + 1
        size = max(1, math.ceil((most - least) / 100))
        bins = max(2, math.ceil((most - least) / size))
        # Whole numbers are in the middle of their bins.
        return Scale(least - 0.5, least - 0.5 + bins * size, bins)
    if low >= 0 and high <= 1 + 1e-5:
        first, last = 0.0, 1.0
    else:
        first, last = (float(np.quantile(values, quantile)) for quantile in _QUANTILES)
        # A cosine of two equal averages may be rounded to just over 1.
        last = min(last, 1.0) if high <= 1 + 1e-5 else last
    if last - first <= 1e-6 * max(1.0, abs(last)):
        first, last = first - 0.5, last + 0.5
    width = round_width((last - first) / _FEWEST_BINS)
    first, last = math.floor(first / width + 1e-6) * width, math.ceil(last / width - 1e-6) * width
    return Scale(round(first, 10), round(last, 10), max(2, round((last - first) / width)))


def round_width(width: float) -> float:
    """The largest of 1, 2, 5, 10, 20, ... and their tenths, hundredths, ... that is not above ``width``."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in _ROUND if factor * power <= width * (1 + 1e-9))


def handle_step(scale: Scale, integer: bool) -> float:
    """How far a handle moves at a time: half a bin, or the smallest whole number of a bin."""
    width = (scale.high - scale.low) / scale.bins
    return 1.0 if integer else round(width / 2, 10)
