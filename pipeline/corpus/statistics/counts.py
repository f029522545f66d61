"""The one place where pairs are counted: score bands, histograms, means and deciles, which add up."""

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

# Bands of the paraphrase score, open below and closed above (PN Table 3).
BAND_EDGES: Final = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
BANDS: Final = tuple(f"({low:.1f}, {high:.1f}]" for low, high in itertools.pairwise(BAND_EDGES))


def band_of(scores: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Band 0 .. 4 of each paraphrase score, -1 outside (-0.1, 1.0]."""
    edges = np.array(BAND_EDGES, dtype=scores.dtype)
    # Rounding may lift the cosine of two equal averages just over 1: it belongs to the last band.
    band = np.searchsorted(edges, np.minimum(scores, edges[-1]), side="left") - 1
    return np.where(band < len(BANDS), band, -1)


HEAT_X: Final = SCALES["paraphrase_score"]
HEAT_Y: Final = SCALES["overlap_3"]


@dataclass
class Moments:
    """Number, sum and sum of squares of values."""

    number: int = 0
    total: float = 0.0
    squares: float = 0.0

    @staticmethod
    def of(values: Values) -> Moments:
        """Return the moments of an array without NaN."""
        return Moments(len(values), float(values.sum()), float(np.square(values).sum()))

    def add(self, other: Moments) -> None:
        """Take in other values."""
        self.number += other.number
        self.total += other.total
        self.squares += other.squares

    @property
    def mean(self) -> float | None:
        """Mean, or None of no values."""
        return self.total / self.number if self.number else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the values themselves (not an estimate for a larger population)."""
        if not self.number:
            return None
        mean = self.total / self.number
        return float(np.sqrt(max(0.0, self.squares / self.number - mean * mean)))


@dataclass
class Figures:
    """What is added up over pairs.

    pairs: how many. band_pairs: pairs a score band. band_overlaps: trigram overlap of each score band.
    histograms: pairs a bin, by column. moments: of the values, by column.
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
        """Take in other pairs."""
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
    """Return the figures of all parts together."""
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
    """Figures of pairs; missing columns are left out."""
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
        # Bands are decided on the score as it is stored: 0.2 as a float32 is in (-0.1, 0.2].
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
    """Values of the averaged columns that the rows have, and where each is missing."""
    result = {}
    for name in AVERAGED:
        if name in rows.column_names:
            values, missing = numbers(rows.column(name))
            result[name] = (values.astype(np.float64), missing)
    return result


def rounded(value: float | None) -> float | None:
    """Return a figure for people."""
    return None if value is None else round(value, 4)


def plain_bands(figures: Figures) -> list[dict[str, Any]]:
    """ParaNMT's Table 3: pairs of each band, mean and standard deviation of the trigram overlap."""
    return [
        {
            "band": band,
            "pairs": int(pairs),
            "overlap_3": rounded(moments.mean),
            "overlap_3_sd": rounded(moments.deviation),
        }
        for band, pairs, moments in zip(BANDS, figures.band_pairs, figures.band_overlaps, strict=True)
    ]
