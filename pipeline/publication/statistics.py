"""What a published corpus' card and plots tell: counts a source, score bands, histogram, means, examples."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.selection.fate import Counts, count_rows, kept_mask
from paraforge.selection.filters import Mask, numbers
from paraforge.selection.sampling import LINEAGE, sampling_keys

# Bands of the paraphrase score, open below and closed above (PN Table 3).
BAND_EDGES = (-0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
BANDS = tuple(f"({low:.1f}, {high:.1f}]" for low, high in itertools.pairwise(BAND_EDGES))
# A histogram bin is 0.05 wide; scores are from -1 to 1.
HISTOGRAM_BINS = 40
AVERAGED = (
    "reference_tokens",
    "translation_tokens",
    "translation_score",
    "paraphrase_score",
    "overlap_1",
    "overlap_2",
    "overlap_3",
    "copy_rate",
)
_EXAMPLE_COLUMNS = ("source", "line", "reference", "translation", "paraphrase_score", "overlap_3")
_EXAMPLE_SEED = 0


def band_of(scores: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Band 0 .. 4 of each paraphrase score, -1 outside (-0.1, 1.0]."""
    edges = np.array(BAND_EDGES, dtype=scores.dtype)
    # Rounding may lift the cosine of two equal averages just over 1: it belongs to the last band.
    band = np.searchsorted(edges, np.minimum(scores, edges[-1]), side="left") - 1
    return np.where(band < len(BANDS), band, -1)


@dataclass(order=True)
class Example:
    """A pair to show; ``key`` is pseudo-random, so the pairs with the smallest keys are a fair sample."""

    key: int
    pair: dict[str, Any] = field(compare=False)


def _band_zeros() -> npt.NDArray[np.float64]:
    return np.zeros(len(BANDS))


def _bin_zeros() -> npt.NDArray[np.float64]:
    return np.zeros(HISTOGRAM_BINS)


@dataclass
class Statistics:
    """Sums over rows, so that the statistics of shards add up to those of the corpus.

    Attributes:
        sources: counts of each source.
        band_pairs, band_overlap: pairs a band and the sum of their trigram overlap, over all scored pairs.
        band_kept, band_kept_overlap: the same over kept pairs.
        histogram, histogram_kept: pairs a bin of the paraphrase score.
        sums, known: for each averaged column the sum over kept pairs, and how many have a value.
        examples: for each band kept pairs to show.
    """

    examples_per_band: int = 0
    sources: dict[str, Counts] = field(default_factory=dict)
    band_pairs: npt.NDArray[np.float64] = field(default_factory=_band_zeros)
    band_overlap: npt.NDArray[np.float64] = field(default_factory=_band_zeros)
    band_kept: npt.NDArray[np.float64] = field(default_factory=_band_zeros)
    band_kept_overlap: npt.NDArray[np.float64] = field(default_factory=_band_zeros)
    histogram: npt.NDArray[np.float64] = field(default_factory=_bin_zeros)
    histogram_kept: npt.NDArray[np.float64] = field(default_factory=_bin_zeros)
    sums: dict[str, float] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    examples: list[list[Example]] = field(default_factory=lambda: [[] for _ in BANDS])

    @property
    def counts(self) -> Counts:
        """Counts of all sources together."""
        total = Counts()
        for counts in self.sources.values():
            total.add(counts)
        return total

    def add(self, other: Statistics) -> None:
        """Add the statistics of other rows."""
        for source, counts in other.sources.items():
            self.sources.setdefault(source, Counts()).add(counts)
        for name in (
            "band_pairs",
            "band_overlap",
            "band_kept",
            "band_kept_overlap",
            "histogram",
            "histogram_kept",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for column, value in other.sums.items():
            self.sums[column] = self.sums.get(column, 0.0) + value
            self.known[column] = self.known.get(column, 0) + other.known[column]
        self.examples = [
            heapq.nsmallest(self.examples_per_band, [*mine, *others])
            for mine, others in zip(self.examples, other.examples, strict=True)
        ]

    def means(self) -> dict[str, float]:
        """Means over kept pairs."""
        return {
            column: round(self.sums[column] / self.known[column], 4)
            for column in self.sums
            if self.known[column]
        }

    def bands(self) -> list[dict[str, Any]]:
        """The first columns of PN Table 3, over all scored pairs and over kept ones."""
        return [
            {
                "band": band,
                "pairs": int(self.band_pairs[index]),
                "overlap_3": _ratio(self.band_overlap[index], self.band_pairs[index]),
                "kept": int(self.band_kept[index]),
                "kept_overlap_3": _ratio(self.band_kept_overlap[index], self.band_kept[index]),
            }
            for index, band in enumerate(BANDS)
        ]

    def scores(self) -> list[dict[str, Any]]:
        """The histogram of the paraphrase score; ``score`` is the lower edge of a bin."""
        edges = np.linspace(-1, 1, HISTOGRAM_BINS + 1)
        return [
            {"score": round(float(edges[index]), 2), "pairs": int(pairs), "kept": int(kept)}
            for index, (pairs, kept) in enumerate(zip(self.histogram, self.histogram_kept, strict=True))
        ]


def _ratio(total: float, count: float) -> float:
    return round(float(total / count), 4) if count else 0.0


def describe(rows: pa.Table, examples_per_band: int) -> Statistics:
    """Statistics of a shard with all its columns, ``rejected`` and ``failed`` among them.

    Raises:
        IncompleteError: a row is both rejected and failed.
    """
    kept = kept_mask(rows)
    statistics = Statistics(examples_per_band, sources=count_sources(rows))
    for column in AVERAGED:
        if column in rows.column_names:
            values, missing = numbers(rows.column(column))
            counted = values[kept & ~missing]
            statistics.sums[column] = float(counted.sum(dtype=np.float64))
            statistics.known[column] = len(counted)
    if "paraphrase_score" in rows.column_names:
        _describe_scores(statistics, rows, kept)
    return statistics


def count_sources(rows: pa.Table) -> dict[str, Counts]:
    """Counts of each source among ``rows``, by the columns ``rejected`` and ``failed``."""
    names = rows.column("source").unique().to_pylist()
    fate = rows.select([name for name in ("rejected", "failed") if name in rows.column_names])
    if len(names) == 1:
        return {names[0]: count_rows(fate)}
    source = rows.column("source")
    return {name: count_rows(fate.filter(pc.equal(source, name))) for name in names}


def _describe_scores(statistics: Statistics, rows: pa.Table, kept: Mask) -> None:
    scores, missing = numbers(rows.column("paraphrase_score"))
    band = np.where(missing, -1, band_of(scores))
    overlap = (
        numbers(rows.column("overlap_3"))[0] if "overlap_3" in rows.column_names else np.zeros(len(scores))
    )
    in_band = band >= 0
    for chosen, pairs, overlaps in (
        (in_band, statistics.band_pairs, statistics.band_overlap),
        (in_band & kept, statistics.band_kept, statistics.band_kept_overlap),
    ):
        pairs += np.bincount(band[chosen], minlength=len(BANDS))
        overlaps += np.bincount(band[chosen], weights=overlap[chosen], minlength=len(BANDS))
    bins = np.clip(((scores + 1) * (HISTOGRAM_BINS / 2)).astype(np.int64), 0, HISTOGRAM_BINS - 1)
    statistics.histogram += np.bincount(bins[~missing], minlength=HISTOGRAM_BINS)
    statistics.histogram_kept += np.bincount(bins[kept & ~missing], minlength=HISTOGRAM_BINS)
    if statistics.examples_per_band:
        keys = sampling_keys(
            rows.select([name for name in LINEAGE if name in rows.column_names]), _EXAMPLE_SEED
        )
        shown = rows.select([name for name in _EXAMPLE_COLUMNS if name in rows.column_names])
        for index in range(len(BANDS)):
            places = np.flatnonzero((band == index) & kept)
            statistics.examples[index] = _smallest(keys, places, shown, statistics.examples_per_band)


def _smallest(
    keys: npt.NDArray[np.uint64], places: npt.NDArray[np.intp], rows: pa.Table, count: int
) -> list[Example]:
    if len(places) > count:
        places = places[np.argpartition(keys[places], count)[:count]]
    places = places[np.argsort(keys[places], kind="stable")]
    pairs = rows.take(pa.array(places)).to_pylist()
    return [Example(int(key), pair) for key, pair in zip(keys[places], pairs, strict=True)]


def merge(parts: Iterable[Statistics], examples_per_band: int) -> Statistics:
    """The statistics of all parts together."""
    total = Statistics(examples_per_band)
    for part in parts:
        total.add(part)
    return total
