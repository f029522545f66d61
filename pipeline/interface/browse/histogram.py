"""A score's histogram: its scale, with bins and steps of its handles, and outlines for a picture 1,000 wide
and 100 high of all pairs, kept pairs and mismatched pairs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    width = _round_width((last - first) / _FEWEST_BINS)
    first, last = math.floor(first / width + 1e-6) * width, math.ceil(last / width - 1e-6) * width
    return Scale(round(first, 10), round(last, 10), max(2, round((last - first) / width)))


def _round_width(width: float) -> float:
    """Return the largest of 1, 2, 5, 10, ... and their tenths, hundredths, ... that is at most ``width``."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in (5.0, 2.0, 1.0) if factor * power <= width * (1 + 1e-9))


def handle_step(scale: Scale, integer: bool) -> float:
    """Return how far a handle moves at a time: half a bin, or 1 for whole numbers."""
    return 1.0 if integer else round((scale.high - scale.low) / scale.bins / 2, 10)


@dataclass(frozen=True)
class Outlines:
    """What is drawn of a score, as data of SVG paths.

    all: pairs that came to selection. kept: within the bounds, pairs that nothing rejects.
    gained: outside, pairs that would be kept if the bounds let them in.
    wrong: mismatched pairs, as a line; empty without them.
    """

    all: str
    kept: str
    gained: str
    wrong: str


def outlines(
    scale: Scale,
    totals: Sequence[int],
    passing: Sequence[int],
    low: float | None,
    high: float | None,
    wrong: Sequence[float] = (),
) -> Outlines:
    """Draw a histogram; heights are as the square root of counts, so that small bins can be seen.

    totals: pairs in each bin. passing: those that no other score rejects. low, high: the bounds.
    wrong: mismatched pairs in each bin; drawn as high as the highest bin of all.
    """
    most = max(totals, default=0)
    width = (scale.high - scale.low) / scale.bins
    # Whole numbers are in the middle of their bins.
    reach = width / 2 if scale.low % 1 == 0.5 else 0.0
    inside = (-math.inf if low is None else low - reach, math.inf if high is None else high + reach)
    kept, gained, everything = [], [], []
    for bin, (total, passes) in enumerate(zip(totals, passing, strict=True)):
        left, right = scale.low + bin * width, scale.low + (bin + 1) * width
        everything.append((left, right, total))
        start, end = max(left, inside[0]), min(right, inside[1])
        if start < end:
            kept.append((start, end, passes))
            gained += [(left, start, passes), (end, right, passes)]
        else:
            gained.append((left, right, passes))
    return Outlines(
        _bars(scale, everything, most), _bars(scale, kept, most), _bars(scale, gained, most), _line(wrong)
    )


def _x(scale: Scale, value: float) -> str:
    return f"{1000 * (value - scale.low) / (scale.high - scale.low):.1f}"


def _y(count: float, most: float) -> str:
    return f"{100 - 96 * math.sqrt(count / most):.1f}"


def _bars(scale: Scale, bars: Iterable[tuple[float, float, int]], most: int) -> str:
    return "".join(
        f"M{_x(scale, left)} 100V{_y(count, most)}H{_x(scale, right)}V100Z"
        for left, right, count in bars
        if count and right - left > 1e-9
    )


def _line(counts: Sequence[float]) -> str:
    most = max(counts, default=0)
    if not most:
        return ""
    step = 1000 / len(counts)
    return "M" + " ".join(f"{(bin + 0.5) * step:.1f} {_y(count, most)}" for bin, count in enumerate(counts))
