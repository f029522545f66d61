"""Counts pairs for all reports: score bands, histograms, means and deciles, which add up over shards."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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


Sums = npt.NDArray[np.float64]
"""The number, sum and sum of squares of values."""


def sums_of(values: Values) -> Sums:
    """Return the number, sum and sum of squares of an array without NaN."""
    return np.array([len(values), values.sum(), np.square(values).sum()])


def mean_of(sums: Sums) -> float | None:
    """Return the mean, or None without values."""
    return float(sums[1] / sums[0]) if sums[0] else None


def rounded_mean_of(sums: Sums) -> float | None:
    """Return the mean rounded for tables, or None without values."""
    mean = mean_of(sums)
    return None if mean is None else round(mean, 4)


def deviation_of(sums: Sums) -> float | None:
    """Return the standard deviation of the values themselves, rounded for tables; None without values."""
    if not sums[0]:
        return None
    mean = sums[1] / sums[0]
    return round(float(np.sqrt(max(0.0, sums[2] / sums[0] - mean * mean))), 4)


def means_of(sums: Mapping[str, Sums]) -> dict[str, float | None]:
    """Return the means by name, each followed by the standard deviation as NAME_sd."""
    means: dict[str, float | None] = {}
    for name, total in sums.items():
        means |= {name: rounded_mean_of(total), f"{name}_sd": deviation_of(total)}
    return means


@dataclass
class Figures:
    """Sums over pairs.

    pairs: number of pairs. band_pairs: pairs per score band.
    band_overlaps: sums of the trigram overlap of each score band. histograms: pairs per bin, by column.
    sums: sums of the values, by column.
    """

    pairs: int = 0
    band_pairs: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(BANDS), np.int64))
    band_overlaps: Sums = field(default_factory=lambda: np.zeros((len(BANDS), 3)))
    histograms: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    sums: dict[str, Sums] = field(default_factory=dict)

    def add(self, other: Figures) -> None:
        """Add other pairs."""
        self.pairs += other.pairs
        self.band_pairs = self.band_pairs + other.band_pairs
        self.band_overlaps = self.band_overlaps + other.band_overlaps
        for name, counts in other.histograms.items():
            self.histograms[name] = self.histograms.get(name, 0) + counts
        for name, sums in other.sums.items():
            self.sums[name] = self.sums.get(name, 0) + sums


def added(parts: Iterable[Figures]) -> Figures:
    """Add up the figures of all parts."""
    total = Figures()
    for part in parts:
        total.add(part)
    return total


def figures_of(rows: pa.Table) -> Figures:
    """Compute the figures of pairs; missing columns are left out."""
    result = Figures(pairs=rows.num_rows)
    columns: dict[str, tuple[Values, npt.NDArray[np.bool_]]] = {}
    for name in AVERAGED:
        if name not in rows.column_names:
            continue
        values, missing = numbers(rows.column(name))
        columns[name] = values.astype(np.float64), missing
        known = columns[name][0][~missing]
        result.sums[name] = sums_of(known)
        if scale := SCALES.get(name):
            result.histograms[name] = np.bincount(scale.bin_of(known), minlength=scale.bins)
    if "paraphrase_score" in columns:
        scores, unscored = columns["paraphrase_score"]
        overlap, unknown = columns.get("overlap_3", (np.zeros(len(scores)), np.ones(len(scores), bool)))
        # Bands apply to the stored score: 0.2 as a float32 is in (-0.1, 0.2].
        band = np.where(unscored, -1, band_of(np.where(unscored, 0, scores).astype(np.float32)))
        result.band_pairs = np.bincount(band[band >= 0], minlength=len(BANDS))
        result.band_overlaps = np.stack([sums_of(overlap[(band == b) & ~unknown]) for b in range(len(BANDS))])
    return result
