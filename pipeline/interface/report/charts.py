"""Draws histograms of a published corpus as SVG; texts are escaped, and every picture has a description."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from paraforge.base.shards.pool import in_order
from paraforge.base.shards.resources import available_cores
from paraforge.base.shards.store import read_parquet
from paraforge.corpus.columns import AVERAGED, LABELS, SCALES
from paraforge.corpus.publication.datasets import Dataset
from paraforge.corpus.publication.manifest import KEPT, REJECTED
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs, other_rows
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.selection.filters.bounds import LENGTHS
from paraforge.corpus.statistics.counts import Figures, added, figures_of

_SCORE = "paraphrase_score"
_LONGEST = 60
_WIDTH, _HEIGHT = 320, 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 6, 8, 34


@dataclass(frozen=True)
class Bar:
    """One bin of a histogram: its edges, its kept and rejected pairs, and the weight of mismatched pairs."""

    low: float
    high: float
    kept: int
    rejected: int
    wrong: float = 0.0


def count_pairs(views: dict[str, Dataset]) -> tuple[Figures, Figures]:
    """Return the histograms of kept and of rejected pairs, read in one pass.

    Raises InputError if a file is damaged.
    """
    return _figures(views[KEPT]), _figures(views[REJECTED]) if REJECTED in views else Figures()


def _figures(dataset: Dataset) -> Figures:
    columns = [column for column in AVERAGED if column in dataset.schema.names]

    def figures(index: int) -> Figures:
        return figures_of(read_parquet(dataset.files[index], columns))

    return added(in_order(figures, len(dataset.files), available_cores()))


def bars_of(
    column: str, kept: Figures, rejected: Figures, wrong: npt.NDArray[np.float64] | None = None
) -> list[Bar]:
    """Return the bars of a score, from the first to the last bin that has pairs.

    The last bar of a length includes all longer texts. wrong: weight of mismatched pairs in each bin.
    """
    scale = SCALES[column]
    nothing = np.zeros(scale.bins, np.int64)
    counts = [side.histograms.get(column, nothing).astype(float) for side in (kept, rejected)]
    counts.append(np.zeros(scale.bins) if wrong is None else wrong)
    table = np.stack(counts)
    if column in LENGTHS and table.shape[1] > _LONGEST:
        beyond = table[:, _LONGEST:].sum(axis=1, keepdims=True)
        table = np.concatenate([table[:, :_LONGEST], beyond], axis=1)
    present = table.sum(axis=0).nonzero()[0]
    if not len(present):
        return []
    edges = scale.edges
    return [
        Bar(edges[bin], edges[bin + 1], int(table[0, bin]), int(table[1, bin]), float(table[2, bin]))
        for bin in range(present[0], present[-1] + 1)
    ]


def count_mismatched(corpus: Path) -> npt.NDArray[np.float64] | None:
    """Return the weight of mismatched pairs in each bin of the paraphrase score; None without such pairs."""
    pairs = find_wrong_pairs([corpus])
    if pairs is None or not pairs.num_rows:
        return None
    sample, scale = other_rows(pairs), SCALES[_SCORE]
    scores, missing = numbers(sample[_SCORE])
    weights = sample["weight"].to_numpy()[~missing]
    bins = scale.bin_of(scores[~missing].astype(np.float64))
    return np.bincount(bins, weights, scale.bins).astype(np.float64)


def pictures(corpus: Path, views: dict[str, Dataset]) -> Iterator[tuple[str, Markup]]:
    """Yield the name and the histogram of every score of the corpus, the paraphrase score first."""
    kept, rejected = count_pairs(views)
    wrong = count_mismatched(corpus)
    for column in sorted(SCALES, key=lambda name: (name != _SCORE, name not in LENGTHS)):
        bars = bars_of(column, kept, rejected, wrong if column == _SCORE else None)
        if bars:
            unit = f"tokens ({_LONGEST} and more together)" if column in LENGTHS else LABELS[column]
            yield LABELS[column], histogram(bars, LABELS[column], unit)


def histogram(bars: Sequence[Bar], title: str, unit: str) -> Markup:
    """Draw at least one bar: kept pairs, rejected pairs on top of them, and a line for mismatched pairs."""
    low, high = bars[0].low, bars[-1].high
    most = max(max(bar.kept + bar.rejected, bar.wrong) for bar in bars) or 1
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(value: float) -> str:
        return f"{_LEFT + across * (value - low) / (high - low):.1f}"

    def y(count: float) -> str:
        return f"{_TOP + down * (1 - count / most):.1f}"

    def area(begin: float, end: float, bar: Bar) -> str:
        return f"M{x(bar.low)} {y(begin)}V{y(end)}H{x(bar.high)}V{y(begin)}Z"

    drawn = [
        ("kept", "".join(area(0, bar.kept, bar) for bar in bars)),
        ("rejected", "".join(area(bar.kept, bar.kept + bar.rejected, bar) for bar in bars if bar.rejected)),
    ]
    if any(bar.wrong for bar in bars):
        steps = " ".join(f"{x(edge)} {y(bar.wrong)}" for bar in bars for edge in (bar.low, bar.high))
        drawn.append(("wrong", f"M{steps}"))
    parts = [Markup('<path class="{}" d="{}"/>').format(kind, path) for kind, path in drawn]
    text = Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>')
    parts += [text.format(x(value), _HEIGHT - 20, "middle", f"{value:g}") for value in _ticks(low, high)]
    parts += [text.format(_LEFT - 5, y(value), "end", f"{value:,g}") for value in _ticks(0, most)]
    parts.append(text.format(_LEFT + across / 2, _HEIGHT - 4, "middle", unit))
    peak = max(bars, key=lambda bar: bar.kept + bar.rejected)
    described = (
        f"{title}. {sum(bar.kept for bar in bars):,} kept and {sum(bar.rejected for bar in bars):,} rejected "
        f"pairs; most, {peak.kept + peak.rejected:,}, from {peak.low:g} to {peak.high:g}."
    )
    whole = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return whole.format(_WIDTH, _HEIGHT, described, Markup("").join(parts))


def _ticks(low: float, high: float) -> list[float]:
    """Return two to six round numbers from ``low`` to ``high``."""
    size = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= (high - low) / 4 * 0.999)
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(place * step, 10) for place in places]
