"""Counts pairs for all reports: score bands, histograms, means and deciles, which add up over shards."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.corpus.columns import AVERAGED, SCALES
from paraforge.corpus.selection.filters import numbers

Values = npt.NDArray[np.float64]

# Bands of the paraphrase score, exclusive below and inclusive above (PN Table 3).
BAND_EDGES: Final = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
BANDS: Final = tuple(f"({low:.1f}, {high:.1f}]" for low, high in itertools.pairwise(BAND_EDGES))


def band_of(scores: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the band, 0 to 4, of each paraphrase score; -1 outside (-0.1, 1.0]."""
    edges = np.array(BAND_EDGES, dtype=scores.dtype)
    # Rounding can make the cosine of two equal averages slightly more than 1; it belongs to the last band.
    band = np.searchsorted(edges, np.minimum(scores, edges[-1]), side="left") - 1
    return np.where(band < len(BANDS), band, -1)


HEAT_X: Final = SCALES["paraphrase_score"]
HEAT_Y: Final = SCALES["overlap_3"]


@dataclass
class Moments:
    """The number, sum and sum of squares of values."""

    number: int = 0
    total: float = 0.0
    squares: float = 0.0

    @staticmethod
    def of(values: Values) -> Moments:
        """Return the moments of an array without NaN."""
        return Moments(len(values), float(values.sum()), float(np.square(values).sum()))

    def add(self, other: Moments) -> None:
        """Add other values."""
        self.number += other.number
        self.total += other.total
        self.squares += other.squares

    @property
    def mean(self) -> float | None:
        """Return the mean, or None without values."""
        return self.total / self.number if self.number else None

    @property
    def deviation(self) -> float | None:
        """Return the standard deviation of the values themselves (not an estimate for a larger
        population)."""
        if not self.number:
            return None
        mean = self.total / self.number
        return float(np.sqrt(max(0.0, self.squares / self.number - mean * mean)))


@dataclass
class Figures:
    """Sums over pairs.

    pairs: number of pairs. band_pairs: pairs per score band.
    band_overlaps: trigram overlap of each score band. histograms: pairs per bin, by column.
    moments: moments of the values, by column.
    heat: pairs by paraphrase score (first axis) and trigram overlap.
    """

    pairs: int = 0
    band_pairs: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(BANDS), np.int64))
    band_overlaps: list[Moments] = field(default_factory=lambda: [Moments() for _ in BANDS])
    histograms: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    moments: dict[str, Moments] = field(default_factory=dict)
    heat: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((HEAT_X.bins, HEAT_Y.bins), np.int64)
    )

    def add(self, other: Figures) -> None:
        """Add other pairs."""
        self.pairs += other.pairs
        self.band_pairs = self.band_pairs + other.band_pairs
        for mine, others in zip(self.band_overlaps, other.band_overlaps, strict=True):
            mine.add(others)
        for name, counts in other.histograms.items():
            self.histograms[name] = self.histograms[name] + counts if name in self.histograms else counts
        for name, moments in other.moments.items():
            self.moments.setdefault(name, Moments()).add(moments)
        self.heat = self.heat + other.heat


def added(parts: Iterable[Figures]) -> Figures:
    """Add up the figures of all parts."""
    total = Figures()
    for part in parts:
        total.add(part)
    return total


def by_source(rows: pa.Table, column: str = "source") -> dict[str, pa.Table]:
    """Return the rows of each source, or of each value of another column."""
    names = rows[column].unique().to_pylist()
    if len(names) == 1:
        return {names[0]: rows}
    return {name: rows.filter(pc.equal(rows[column], name)) for name in names}


def figures_of(rows: pa.Table) -> Figures:
    """Compute the figures of pairs; missing columns are left out."""
    result = Figures(pairs=rows.num_rows)
    columns = _known_columns(rows)
    for name, (values, missing) in columns.items():
        known = values[~missing]
        result.moments[name] = Moments.of(known)
        if scale := SCALES.get(name):
            result.histograms[name] = np.bincount(scale.bin_of(known), minlength=scale.bins)
    if "paraphrase_score" in columns:
        scores, unscored = columns["paraphrase_score"]
        overlap, unknown = columns.get("overlap_3", (np.zeros(len(scores)), np.ones(len(scores), bool)))
        # Bands apply to the stored score: 0.2 as a float32 is in (-0.1, 0.2].
        band = np.where(unscored, -1, band_of(np.where(unscored, 0, scores).astype(np.float32)))
        for index in range(len(BANDS)):
            inside = band == index
            result.band_pairs[index] = inside.sum()
            result.band_overlaps[index] = Moments.of(overlap[inside & ~unknown])
        both = ~unscored & ~unknown
        cells = HEAT_X.bin_of(scores[both]) * HEAT_Y.bins + HEAT_Y.bin_of(overlap[both])
        result.heat = np.bincount(cells, minlength=HEAT_X.bins * HEAT_Y.bins).reshape(
            HEAT_X.bins, HEAT_Y.bins
        )
    return result


def _known_columns(rows: pa.Table) -> dict[str, tuple[Values, npt.NDArray[np.bool_]]]:
    """Return the values of the averaged columns that the rows have, and where they are missing."""
    result = {}
    for name in AVERAGED:
        if name in rows.column_names:
            values, missing = numbers(rows.column(name))
            result[name] = (values.astype(np.float64), missing)
    return result


def rounded(value: float | None) -> float | None:
    """Round a figure for display."""
    return None if value is None else round(value, 4)


def plain_bands(figures: Figures) -> list[dict[str, Any]]:
    """Return ParaNMT's Table 3: pairs in each band, mean and standard deviation of the trigram overlap."""
    return [
        {
            "band": band,
            "pairs": int(pairs),
            "overlap_3": rounded(moments.mean),
            "overlap_3_sd": rounded(moments.deviation),
        }
        for band, pairs, moments in zip(BANDS, figures.band_pairs, figures.band_overlaps, strict=True)
    ]
