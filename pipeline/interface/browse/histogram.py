"""Outlines of a score's histogram for a picture 1,000 wide and 100 high: all pairs, kept ones, wrong ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paraforge.corpus.scorer import Scale

WIDTH, HEIGHT = 1000.0, 100.0


@dataclass(frozen=True)
class Outlines:
    """What is drawn of a score, as data of SVG paths.

    all: pairs that came to selection. kept: within the bounds, pairs that nothing rejects.
    gained: outside, pairs that would be kept if the bounds let them in.
    wrong: wrong pairs, as a line; empty where there are none.
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
    wrong: Sequence[int] = (),
) -> Outlines:
    """Outlines of a histogram; heights are as the square root of counts, so that small bins can be seen.

    scale: of the score. totals: pairs a bin. passing: of these, the ones that no other score rejects.
    low, high: the bounds.
    wrong: wrong pairs a bin; drawn as high as the highest bin of all.
    """
    most = max(totals, default=0)
    width = (scale.high - scale.low) / scale.bins
    # Whole numbers are in the middle of their bins.
    reach = width / 2 if scale.low != int(scale.low) and scale.low * 2 == int(scale.low * 2) else 0.0
    inside = (-math.inf if low is None else low - reach, math.inf if high is None else high + reach)
    kept, gained, everything = [], [], []
    for bin, (total, passes) in enumerate(zip(totals, passing, strict=True)):
        left, right = scale.low + bin * width, scale.low + (bin + 1) * width
        # The outermost bins have the outliers, too.
        everything.append((left, right, total))
        start, end = max(left, inside[0]), min(right, inside[1])
        if start < end:
            kept.append((start, end, passes))
            gained += [(left, start, passes), (end, right, passes)]
        else:
            gained.append((left, right, passes))
    return Outlines(
        _bars(scale, everything, most),
        _bars(scale, kept, most),
        _bars(scale, gained, most),
        _line(wrong),
    )


def _x(scale: Scale, value: float) -> str:
    return f"{WIDTH * (value - scale.low) / (scale.high - scale.low):.1f}"


def _y(count: int, most: int) -> str:
    return f"{HEIGHT - (HEIGHT - 4) * math.sqrt(count / most):.1f}"


def _bars(scale: Scale, bars: Iterable[tuple[float, float, int]], most: int) -> str:
    return "".join(
        f"M{_x(scale, left)} {HEIGHT:g}V{_y(count, most)}H{_x(scale, right)}V{HEIGHT:g}Z"
        for left, right, count in bars
        if count and right - left > 1e-9
    )


def _line(counts: Sequence[int]) -> str:
    most = max(counts, default=0)
    if not most:
        return ""
    step = WIDTH / len(counts)
    return "M" + " ".join(f"{(bin + 0.5) * step:.1f} {_y(count, most)}" for bin, count in enumerate(counts))
