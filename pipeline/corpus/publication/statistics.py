"""Figures for a corpus' card and plots: counts by source, score bands, histogram, means, examples."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.files import write_csv
from paraforge.base.shards.lineage import sampling_keys
from paraforge.base.shards.schema import FATE_COLUMNS
from paraforge.corpus.columns import AVERAGED
from paraforge.corpus.selection.fate import Counts, add_counts, count_rows, kept_mask, total_of
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.statistics.counts import (
    BANDS,
    HEAT_X,
    Figures,
    added,
    band_of,
    by_source,
    figures_of,
    rounded,
)

_EXAMPLE_COLUMNS = ("source", "line", "reference", "translation", "paraphrase_score", "overlap_3")
_EXAMPLE_SEED = 0


@dataclass(order=True)
class Example:
    """A pair to show; ``key`` is pseudo-random, so the pairs with the smallest keys are a fair sample."""

    key: int
    pair: dict[str, Any] = field(compare=False)


@dataclass
class Statistics:
    """Sums over rows, so that the statistics of shards add up to those of the corpus.

    sources: counts of each source. pivots: of each pivot, where there are several.
    kept, refused: figures of the kept pairs, and of all other rows.
    examples: for each band kept pairs to show.
    """

    examples_per_band: int = 0
    sources: dict[str, Counts] = field(default_factory=dict)
    kept: Figures = field(default_factory=Figures)
    refused: Figures = field(default_factory=Figures)
    examples: list[list[Example]] = field(default_factory=lambda: [[] for _ in BANDS])
    pivots: dict[str, Counts] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """Counts of all sources together."""
        return total_of(self.sources)

    def add(self, other: Statistics) -> None:
        """Add the statistics of other rows."""
        add_counts(self.sources, other.sources)
        add_counts(self.pivots, other.pivots)
        self.kept.add(other.kept)
        self.refused.add(other.refused)
        self.examples = [
            heapq.nsmallest(self.examples_per_band, [*mine, *others])
            for mine, others in zip(self.examples, other.examples, strict=True)
        ]

    def means(self) -> dict[str, float]:
        """Means over kept pairs."""
        means = {column: rounded(moments.mean) for column, moments in self.kept.moments.items()}
        return {column: mean for column, mean in means.items() if mean is not None}

    def bands(self) -> list[dict[str, Any]]:
        """The first columns of PN Table 3, over all scored pairs and over kept ones."""
        scored = added([self.kept, self.refused])
        return [
            {
                "band": band,
                "pairs": int(scored.band_pairs[index]),
                "overlap_3": rounded(scored.band_overlaps[index].mean) or 0.0,
                "kept": int(self.kept.band_pairs[index]),
                "kept_overlap_3": rounded(self.kept.band_overlaps[index].mean) or 0.0,
            }
            for index, band in enumerate(BANDS)
        ]

    def scores(self) -> list[dict[str, Any]]:
        """The histogram of the paraphrase score; ``score`` is the lower edge of a bin."""
        nothing = np.zeros(HEAT_X.bins, np.int64)
        kept, refused = (
            figures.histograms.get("paraphrase_score", nothing) for figures in (self.kept, self.refused)
        )
        return [
            {"score": edge, "pairs": int(kept[index] + refused[index]), "kept": int(kept[index])}
            for index, edge in enumerate(HEAT_X.edges[:-1])
        ]


def describe(rows: pa.Table, examples_per_band: int) -> Statistics:
    """Statistics of a shard with all its columns, ``rejected`` and ``failed`` among them. Raises
    IncompleteError: a row is both rejected and failed."""
    kept = kept_mask(rows)
    counted = rows.select([name for name in AVERAGED if name in rows.column_names])
    statistics = Statistics(
        examples_per_band,
        kept=figures_of(counted.filter(pa.array(kept))),
        refused=figures_of(counted.filter(pa.array(~kept))),
    )
    statistics.add(count_lineage(rows))
    if examples_per_band and "paraphrase_score" in rows.column_names:
        scores, missing = numbers(rows.column("paraphrase_score"))
        band = np.where(missing | ~kept, -1, band_of(scores))
        keys = sampling_keys(rows, _EXAMPLE_SEED)
        shown = rows.select([name for name in _EXAMPLE_COLUMNS if name in rows.column_names])
        for index in range(len(BANDS)):
            places = np.flatnonzero(band == index)
            statistics.examples[index] = _smallest(keys, places, shown, examples_per_band)
    return statistics


def count_lineage(rows: pa.Table) -> Statistics:
    """Counts of each source, and of each pivot of rows that have one, by ``rejected`` and ``failed``; nothing
    else. Raises IncompleteError: a row is both rejected and failed."""

    def counts(column: str) -> dict[str, Counts]:
        fate = rows.select([name for name in (column, *FATE_COLUMNS) if name in rows.column_names])
        named = by_source(fate, column).items() if column in fate.column_names else ()
        return {name: count_rows(part) for name, part in named if name is not None}

    return Statistics(sources=counts("source"), pivots=counts("pivot"))


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


def write_plots(statistics: Statistics, directory: Path) -> None:
    """Write ``bands.csv`` and ``scores.csv`` for ``dvc plots show``."""
    for name, rows in (("bands", statistics.bands()), ("scores", statistics.scores())):
        write_csv(directory / f"{name}.csv", list(rows[0]), rows)
