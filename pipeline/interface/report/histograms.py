"""Histograms and means of the report, counted in one pass over the published files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.shards.pool import in_order
from paraforge.base.shards.resources import available_cores
from paraforge.base.shards.store import read_parquet
from paraforge.corpus.columns import AVERAGED, LABELS, SCALES
from paraforge.corpus.publication.datasets import Dataset
from paraforge.corpus.publication.manifest import KEPT, REJECTED
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs, other_rows
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.selection.filters.length import LENGTHS
from paraforge.corpus.statistics.counts import BANDS, HEAT_X, HEAT_Y, Figures, added, by_source, figures_of
from paraforge.interface.report.svg import Bar, Cell

OTHERS = "other sources"
ALL = "all sources"
HEAT_STEP = ((HEAT_X.high - HEAT_X.low) / HEAT_X.bins, (HEAT_Y.high - HEAT_Y.low) / HEAT_Y.bins)
LONGEST = 60
_SCORE = "paraphrase_score"

Pairs = tuple[Figures, Figures]
"""Figures of kept and of rejected pairs."""


def count_published(views: dict[str, Dataset]) -> dict[str, Pairs]:
    """Figures of the kept and of the rejected pairs of each source. Raises InputError: a file is damaged."""
    counted: dict[str, Pairs] = {}
    for place, name in enumerate((KEPT, REJECTED)):
        if name not in views:
            continue
        files = views[name].files
        columns = [column for column in ("source", *AVERAGED) if column in views[name].schema.names]

        def count(
            index: int, files: Sequence[Path] = files, columns: Sequence[str] = columns
        ) -> dict[str, Figures]:
            rows = read_parquet(files[index], columns)
            return {source: figures_of(part) for source, part in by_source(rows).items()}

        for part in in_order(count, len(files), available_cores()):
            for source, figures in part.items():
                counted.setdefault(source, (Figures(), Figures()))[place].add(figures)
    return counted


def count_wrong(corpus: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Histogram of the paraphrase score of each source's wrong pairs, as they weigh; empty without any."""
    pairs = find_wrong_pairs([corpus])
    if pairs is None or not pairs.num_rows:
        return {}
    scale = SCALES[_SCORE]
    counted: dict[str, npt.NDArray[np.float64]] = {}
    for source, part in by_source(other_rows(pairs)).items():
        scores, missing = numbers(part[_SCORE])
        bins, weights = scale.bin_of(scores[~missing].astype(np.float64)), part["weight"].to_numpy()[~missing]
        counted[source] = np.bincount(bins, weights, scale.bins).astype(np.float64)
    return counted


class Histograms:
    """What the report draws, of all sources and of those that are shown by themselves."""

    def __init__(
        self,
        counted: dict[str, Pairs],
        shown: Sequence[str],
        wrong: Mapping[str, npt.NDArray[np.float64]] | None = None,
    ) -> None:
        wrong = wrong or {}
        self.wrong = {source: counts for source, counts in wrong.items() if source in shown}
        self.wrong[ALL] = sum(wrong.values(), start=np.zeros(SCALES[_SCORE].bins))
        self.wrong[OTHERS] = sum(
            (counts for source, counts in wrong.items() if source not in shown),
            start=np.zeros(SCALES[_SCORE].bins),
        )
        self.groups = {ALL: _together(counted.values())}
        self.groups |= {source: counted[source] for source in shown if source in counted}
        others = [pairs for source, pairs in counted.items() if source not in shown]
        self.groups |= {OTHERS: _together(others)} if others else {}
        self.kept, self.refused = self.groups[ALL]

    def scores(self) -> list[tuple[str, list[Bar]]]:
        """Histograms of the paraphrase score in bins of 0.05: of all sources, then of each."""
        groups = {name: pairs for name, pairs in self.groups.items() if _counts(pairs, _SCORE).any()}
        if not groups:
            return []
        low = int((_counts(groups[ALL], _SCORE).sum(axis=0) + self.wrong[ALL]).nonzero()[0][0])
        names = list(groups)[:1] if len(groups) == 2 else list(groups)
        return [(name, self._with_wrong(name, _bars(groups[name], _SCORE, low), low)) for name in names]

    def _with_wrong(self, name: str, bars: list[Bar], low: int) -> list[Bar]:
        wrong = self.wrong[name][low:].tolist() if name in self.wrong else [0.0] * len(bars)
        return [replace(bar, wrong=number) for bar, number in zip(bars, wrong, strict=True)]

    def heat(self) -> list[Cell]:
        """Pairs by paraphrase score and trigram overlap."""
        table = self.kept.heat + self.refused.heat
        return [
            Cell(HEAT_X.edges[x], HEAT_Y.edges[y], int(table[x, y]))
            for x, y in zip(*(axis.tolist() for axis in table.nonzero()), strict=True)
        ]

    def lengths(self) -> list[tuple[str, list[Bar]]]:
        """Histograms of the tokens of both sides; the last bin has all longer ones."""
        sides = (("reference_tokens", "reference"), ("translation_tokens", "translation"))
        pairs = (self.kept, self.refused)
        return [
            (name, _bars(pairs, column, 0, LONGEST))
            for column, name in sides
            if column in self.kept.histograms or column in self.refused.histograms
        ]

    def others(self) -> list[tuple[str, list[Bar]]]:
        """Histograms of all other scores, from the first bin that has pairs."""
        shown = {_SCORE, *LENGTHS}
        pairs = (self.kept, self.refused)
        counted = {name: _counts(pairs, name).sum(axis=0) for name in SCALES if name not in shown}
        return [
            (LABELS[name], _bars(pairs, name, int(counts.nonzero()[0][0])))
            for name, counts in counted.items()
            if counts.any()
        ]

    def bands(self) -> list[dict[str, Any]]:
        """Pairs and mean trigram overlap of each band, of all scored pairs and of kept ones."""
        scored = added([self.kept, self.refused])
        if not {"paraphrase_score", "overlap_3"} <= scored.moments.keys():
            return []
        return [
            {
                "pairs": int(scored.band_pairs[index]),
                "overlap": scored.band_overlaps[index].mean,
                "kept": int(self.kept.band_pairs[index]),
                "kept_overlap": self.kept.band_overlaps[index].mean,
            }
            for index in range(len(BANDS))
        ]

    def means(self) -> list[tuple[str, float | None, float | None]]:
        """Means over kept and over rejected pairs."""
        sides = (self.kept.moments, self.refused.moments)
        found = []
        for column in AVERAGED:
            kept, refused = (side[column].mean if column in side else None for side in sides)
            if kept is not None or refused is not None:
                found.append((LABELS[column], kept, refused))
        return found


def _together(parts: Iterable[Pairs]) -> Pairs:
    pairs = list(parts)
    return added(kept for kept, _ in pairs), added(refused for _, refused in pairs)


def _counts(pairs: Pairs, column: str) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Kept and rejected pairs (2 x bins) a bin."""
    nothing = np.zeros(SCALES[column].bins, np.int64)
    return np.stack([figures.histograms.get(column, nothing) for figures in pairs])


def _bars(pairs: Pairs, column: str, first: int, last: int | None = None) -> list[Bar]:
    """Bars from bin ``first``; bin ``last`` has all beyond it, and empty bins at the end are left out."""
    counts = _counts(pairs, column)
    if last is not None:
        beyond = counts[:, last:].sum(axis=1, keepdims=True)
        counts = np.concatenate([counts[:, :last], beyond], axis=1)
        counts = counts[:, : 1 + max(counts.sum(axis=0).nonzero()[0], default=0)]
    edges = SCALES[column].edges
    return [
        Bar(edges[bin], edges[bin + 1], int(counts[0, bin]), int(counts[1, bin]))
        for bin in range(first, counts.shape[1])
    ]
