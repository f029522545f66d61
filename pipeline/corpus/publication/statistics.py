"""Computes the figures of a corpus' card: counts by source, score bands, means, examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.shards.lineage import sampling_keys
from paraforge.corpus.columns import AVERAGED
from paraforge.corpus.selection.fate import Counts, add_counts, count_by, kept_mask, total_of
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.statistics.counts import BANDS, Figures, band_of, figures_of, mean_of

_EXAMPLE_COLUMNS = ("source", "line", "reference", "translation", "paraphrase_score", "overlap_3")
_EXAMPLE_SEED = 0


@dataclass
class Published:
    """Sums over rows, so the figures of shards add up to those of the corpus.

    sources: counts for each source. pivots: counts for each pivot, if there are several.
    kept, scored: figures of the kept pairs, and of all rows.
    examples: for each band, the kept pairs with the smallest pseudo-random ``key``, as examples.
    """

    examples_per_band: int = 0
    sources: dict[str, Counts] = field(default_factory=dict)
    kept: Figures = field(default_factory=Figures)
    scored: Figures = field(default_factory=Figures)
    examples: list[list[dict[str, Any]]] = field(default_factory=lambda: [[] for _ in BANDS])
    pivots: dict[str, Counts] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """The counts of all sources together."""
        return total_of(self.sources)

    def add(self, other: Published) -> None:
        """Add the statistics of other rows."""
        add_counts(self.sources, other.sources)
        add_counts(self.pivots, other.pivots)
        self.kept.add(other.kept)
        self.scored.add(other.scored)
        self.examples = [
            sorted(mine + others, key=lambda pair: pair["key"])[: self.examples_per_band]
            for mine, others in zip(self.examples, other.examples, strict=True)
        ]

    def means(self) -> dict[str, float]:
        """Return means over kept pairs."""
        means = {column: mean_of(sums) for column, sums in self.kept.sums.items()}
        return {column: mean for column, mean in means.items() if mean is not None}

    def bands(self) -> list[dict[str, Any]]:
        """Return the first columns of PN Table 3, over all scored pairs and over kept ones."""
        return [
            {
                "band": band,
                "pairs": int(self.scored.band_pairs[index]),
                "overlap_3": mean_of(self.scored.band_overlaps[index]) or 0.0,
                "kept": int(self.kept.band_pairs[index]),
                "kept_overlap_3": mean_of(self.kept.band_overlaps[index]) or 0.0,
            }
            for index, band in enumerate(BANDS)
        ]


def describe(rows: pa.Table, examples_per_band: int) -> Published:
    """Describe a shard with all its columns, including ``rejected`` and ``failed``. Raises IncompleteError if
    a row is both rejected and failed."""
    kept = kept_mask(rows)
    counted = rows.select([name for name in AVERAGED if name in rows.column_names])
    figures = count_lineage(rows)
    figures.examples_per_band = examples_per_band
    figures.kept = figures_of(counted.filter(pa.array(kept)))
    figures.scored = figures_of(counted)
    if examples_per_band and "paraphrase_score" in rows.column_names:
        scores, missing = numbers(rows.column("paraphrase_score"))
        band = np.where(missing | ~kept, -1, band_of(scores))
        shown = rows.select([name for name in _EXAMPLE_COLUMNS if name in rows.column_names])
        shown = shown.append_column("key", pa.array(sampling_keys(rows, _EXAMPLE_SEED)))
        for index in range(len(BANDS)):
            inside = shown.filter(pa.array(band == index))
            smallest = pc.select_k_unstable(inside, k=examples_per_band, sort_keys=[("key", "ascending")])
            figures.examples[index] = inside.take(smallest).to_pylist()
    return figures


def count_lineage(rows: pa.Table) -> Published:
    """Count the rows of each source, and of each pivot if there are pivots, by ``rejected`` and ``failed``.
    Raises IncompleteError if a row is both rejected and failed."""
    pivots = count_by(rows, "pivot") if "pivot" in rows.column_names else {}
    pivots.pop(None, None)  # rows that have none
    return Published(sources=count_by(rows, "source"), pivots=pivots)
