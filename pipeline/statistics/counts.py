"""Sums over rows that add up: counts, score bands, histograms and deciles of a shard, and of all shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.publication.statistics import BANDS, band_of
from paraforge.selection.filters import numbers

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Equal bins from ``low`` to ``high``; what lies outside is counted in the first or last bin."""

    low: float
    high: float
    bins: int

    def bin_of(self, values: Values) -> npt.NDArray[np.int64]:
        """Bin of each value. An edge belongs to the bin above it, the last edge to the last bin."""
        places = np.floor((values - self.low) * (self.bins / (self.high - self.low)) + 1e-6)
        return np.clip(places, 0, self.bins - 1).astype(np.int64)

    @property
    def edges(self) -> list[float]:
        """Lower edges of the bins, and the upper one of the last."""
        return [round(float(edge), 6) for edge in np.linspace(self.low, self.high, self.bins + 1)]


# Each histogram's column and bins. Lengths: one bin a token, 100 and more in the last.
SCALES: Final[Mapping[str, Scale]] = {
    "reference_tokens": Scale(0, 101, 101),
    "translation_tokens": Scale(0, 101, 101),
    "translation_score": Scale(-4, 0, 40),
    "paraphrase_score": Scale(-1, 1, 40),
    "overlap_1": Scale(0, 1, 20),
    "overlap_2": Scale(0, 1, 20),
    "overlap_3": Scale(0, 1, 20),
    "copy_rate": Scale(0, 1, 20),
}
AVERAGED: Final = tuple(SCALES)
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
        """The moments of an array without NaN."""
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


def _bands() -> list[Moments]:
    return [Moments() for _ in BANDS]


@dataclass
class SourceFigures:
    """What is added up for one source.

    Attributes:
        pairs: rows with a translation.
        band_pairs: pairs a score band.
        band_overlaps: trigram overlap of each score band.
        histograms: pairs a bin, by column.
        heat: pairs by paraphrase score (first axis) and trigram overlap.
    """

    pairs: int = 0
    band_pairs: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(BANDS), np.int64))
    band_overlaps: list[Moments] = field(default_factory=_bands)
    histograms: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    heat: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((HEAT_X.bins, HEAT_Y.bins), np.int64)
    )

    def add(self, other: SourceFigures) -> None:
        """Take in other rows."""
        self.pairs += other.pairs
        self.band_pairs = self.band_pairs + other.band_pairs
        for mine, others in zip(self.band_overlaps, other.band_overlaps, strict=True):
            mine.add(others)
        for name, counts in other.histograms.items():
            self.histograms[name] = self.histograms[name] + counts if name in self.histograms else counts
        self.heat = self.heat + other.heat


Decile = tuple[str, int]
"""Column of the ranking score, and the tenth from 1, the lowest."""


def source_figures(rows: pa.Table) -> SourceFigures:
    """Figures of rows of one source."""
    result = SourceFigures(pairs=rows.num_rows)
    columns = known_columns(rows)
    for name, (values, missing) in columns.items():
        scale = SCALES[name]
        result.histograms[name] = np.bincount(scale.bin_of(values[~missing]), minlength=scale.bins)
    if "paraphrase_score" in columns:
        scores, unscored = columns["paraphrase_score"]
        overlap, unknown = columns.get("overlap_3", (np.zeros(len(scores)), np.ones(len(scores), bool)))
        # Bands are decided on the score as it is stored: 0.2 as a float32 lies in (-0.1, 0.2].
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


def known_columns(rows: pa.Table) -> dict[str, tuple[Values, npt.NDArray[np.bool_]]]:
    """Values of the averaged columns that there are, and where each is missing."""
    result = {}
    for name in AVERAGED:
        if name in rows.column_names:
            values, missing = numbers(rows.column(name))
            result[name] = (values.astype(np.float64), missing)
    return result


def decile_figures(rows: pa.Table) -> dict[Decile, dict[str, Moments]]:
    """Moments of every averaged column for each tenth of each ``SCORE_decile`` column."""
    result: dict[Decile, dict[str, Moments]] = {}
    columns = known_columns(rows)
    for ranking in [name for name in rows.column_names if name.endswith("_decile")]:
        places, unranked = numbers(rows.column(ranking))
        for tenth in range(1, 11):
            inside = (places == tenth) & ~unranked
            result[ranking.removesuffix("_decile"), tenth] = {
                "pairs": Moments(int(inside.sum())),
                **{
                    name: Moments.of(values[inside & ~missing]) for name, (values, missing) in columns.items()
                },
            }
    return result


def merge_deciles(
    total: dict[Decile, dict[str, Moments]], part: Mapping[Decile, Mapping[str, Moments]]
) -> None:
    """Add a shard's deciles to ``total``."""
    for decile, columns in part.items():
        mine = total.setdefault(decile, {})
        for name, moments in columns.items():
            mine.setdefault(name, Moments()).add(moments)


def rounded(value: float | None, digits: int = 4) -> float | None:
    """A figure for people."""
    return None if value is None else round(value, digits)


def plain_bands(figures: SourceFigures) -> list[dict[str, Any]]:
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
