"""A score's histogram: its scale, steps of its handles, and an outline that is 1,000 wide and 100 high."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.corpus.scorer import Scale

_FEWEST_BINS = 40
# Outside of these quantiles are outliers: they are counted in the first and the last bin.
_QUANTILES = (0.001, 0.999)


def scale_of(values: npt.NDArray[Any], low: float, high: float, integer: bool) -> Scale:
    """Choose a scale with round edges and 40 to 200 bins; scores from 0 to 1 get the whole of that range.

    values: a sample of the scores, none of them missing. low, high: the smallest and the largest of all.
    integer: whether scores are whole numbers: then a bin is one or several of them.
    """
    first, last = np.quantile(values, _QUANTILES).tolist()
    if integer:
        first, last = math.floor(low), math.floor(last) + 1
        size = max(1, math.ceil((last - first) / 100))
        bins = max(2, math.ceil((last - first) / size))
        # Whole numbers are in the middle of their bins.
        return Scale(first - 0.5, first - 0.5 + bins * size, bins)
    # A cosine of two equal averages may be rounded to just over 1.
    at_most_one = high <= 1 + 1e-5
    first, last = (0.0, 1.0) if low >= 0 and at_most_one else (first, min(last, 1.0) if at_most_one else last)
    if last - first <= 1e-6 * max(1.0, abs(last)):
        first, last = first - 0.5, last + 0.5
    width = (last - first) / _FEWEST_BINS
    power = 10.0 ** math.floor(math.log10(width))
    width = next(factor * power for factor in (5.0, 2.0, 1.0) if factor * power <= width * (1 + 1e-9))
    first, last = math.floor(first / width + 1e-6) * width, math.ceil(last / width - 1e-6) * width
    return Scale(round(first, 10), round(last, 10), max(2, round((last - first) / width)))


def handle_step(scale: Scale, integer: bool) -> float:
    """Return how far a handle moves at a time: half a bin, or 1 for whole numbers."""
    return 1.0 if integer else round((scale.high - scale.low) / scale.bins / 2, 10)


def outline(counts: Sequence[float], most: float | None = None, line: bool = False) -> str:
    """Draw the counts of equal bins as data of an SVG path: bars, or a line through their middles.

    Heights are as the square root of counts, so that small bins can be seen. most: the count that is as high
    as the picture; by default the highest.
    """
    most = max(counts, default=0) if most is None else most
    step = 1000 / max(1, len(counts))
    heights = [100 - 96 * math.sqrt(count / most) if most else 100.0 for count in counts]
    if line and most:
        return "M" + " ".join(f"{(bin + 0.5) * step:.1f} {y:.1f}" for bin, y in enumerate(heights))
    return "".join(
        f"M{bin * step:.1f} 100V{y:.1f}H{(bin + 1) * step:.1f}V100Z"
        for bin, y in enumerate(heights)
        if counts[bin]
    )


def inside(scale: Scale, low: float | None, high: float | None, integer: bool) -> tuple[float, float]:
    """Return where the part of a picture within two bounds begins, and how wide it is."""
    reach = 0.5 if integer else 0.0
    left = 0.0 if low is None else (low - reach - scale.low) / (scale.high - scale.low)
    right = 1.0 if high is None else (high + reach - scale.low) / (scale.high - scale.low)
    left, right = (1000 * min(max(end, 0.0), 1.0) for end in (left, right))
    return round(left, 1), round(max(0.0, right - left), 1)
