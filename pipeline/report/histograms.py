"""Histograms and means over kept and refused pairs, counted by DuckDB in one pass each."""

# ruff: noqa: S608 - columns and views are of our own
from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paraforge.corpus.database import fetch
from paraforge.corpus.sample import Band
from paraforge.publication.datasets import Dataset
from paraforge.publication.manifest import KEPT
from paraforge.publication.statistics import BAND_EDGES, BANDS
from paraforge.report.svg import Bar, Cell

if TYPE_CHECKING:
    import duckdb

OTHERS = "other sources"
ALL = "all sources"
HEAT_STEP = (0.05, 0.05)
LONGEST = 60
_SCORED = "paraphrase_score IS NOT NULL"
# Bins of 0.05 from -1 to 1. A score just under a bin's edge by rounding belongs to the bin above.
_SCORE_BIN = "least(19, greatest(-20, floor(paraphrase_score * 20 + 1e-6)))::INTEGER"
_MEANS = (
    ("paraphrase_score", "paraphrase score"),
    ("overlap_1", "unigram overlap"),
    ("overlap_2", "bigram overlap"),
    ("overlap_3", "trigram overlap"),
    ("copy_rate", "copy rate"),
    ("translation_score", "translation score"),
    ("reference_tokens", "tokens of the reference"),
    ("translation_tokens", "tokens of the translation"),
)


class Histograms:
    """Histograms and means over kept and refused pairs."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, views: dict[str, Dataset], shown: Sequence[str]
    ) -> None:
        self.connection = connection
        self.columns = set.intersection(
            *(set(dataset.schema.names) for name, dataset in views.items() if name != "lexicon")
        )
        self.shown = list(shown)
        self.parts = [
            (name, "true" if name == KEPT else "false") for name in ("corpus", "rejected") if name in views
        ]

    def _union(self, *columns: str, where: str = "true") -> str:
        # Columns are named one by one: only these are read.
        listed = ", ".join(("source", *columns))
        return " UNION ALL ".join(
            f"SELECT {listed}, {kept} AS kept FROM {view} WHERE {where}" for view, kept in self.parts
        )

    def has(self, *columns: str) -> bool:
        """Whether the corpus has the columns."""
        return self.columns >= set(columns)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a query."""
        return list(fetch(self.connection, sql).to_pylist())

    def scores(self) -> list[tuple[str, list[Bar]]]:
        """Histograms of the paraphrase score in bins of 0.05: of all sources, then of each."""
        if not self.has("paraphrase_score"):
            return []
        found = self.rows(
            f"SELECT source, kept, {_SCORE_BIN} AS bin, count(*) AS pairs "
            f"FROM ({self._union('paraphrase_score', where=_SCORED)}) GROUP BY ALL"
        )
        if not found:
            return []
        low = min(row["bin"] for row in found)
        groups: dict[str, dict[tuple[int, bool], int]] = defaultdict(lambda: defaultdict(int))
        for row in found:
            for name in (ALL, row["source"] if row["source"] in self.shown else OTHERS):
                groups[name][row["bin"], row["kept"]] += row["pairs"]
        names = [ALL, *(name for name in [*self.shown, OTHERS] if name in groups)]
        if len(names) == 2:
            names = names[:1]
        return [
            (
                name,
                [
                    Bar(bin / 20, (bin + 1) / 20, groups[name][bin, True], groups[name][bin, False])
                    for bin in range(low, 20)
                ],
            )
            for name in names
        ]

    def heat(self) -> list[Cell]:
        """Pairs by paraphrase score and trigram overlap."""
        if not self.has("paraphrase_score", "overlap_3"):
            return []
        known = f"{_SCORED} AND overlap_3 IS NOT NULL"
        found = self.rows(
            f"SELECT {_SCORE_BIN} AS x, least(19, floor(overlap_3 * 20 + 1e-6))::INTEGER AS y, "
            "count(*) AS pairs "
            f"FROM ({self._union('paraphrase_score', 'overlap_3', where=known)}) GROUP BY ALL ORDER BY ALL"
        )
        return [Cell(row["x"] / 20, row["y"] / 20, row["pairs"]) for row in found]

    def lengths(self) -> list[tuple[str, list[Bar]]]:
        """Histograms of the tokens of both sides; the last bin has all longer ones."""
        result = []
        for column, name in (("reference_tokens", "reference"), ("translation_tokens", "translation")):
            if not self.has(column):
                continue
            found = self.rows(
                f"SELECT kept, least({column}, {LONGEST})::INTEGER AS bin, count(*) AS pairs "
                f"FROM ({self._union(column, where=f'{column} IS NOT NULL')}) GROUP BY ALL"
            )
            counts: dict[tuple[int, bool], int] = {(row["bin"], row["kept"]): row["pairs"] for row in found}
            last = max((row["bin"] for row in found), default=0)
            bars = [
                Bar(bin, bin + 1, counts.get((bin, True), 0), counts.get((bin, False), 0))
                for bin in range(last + 1)
            ]
            result.append((name, bars))
        return result

    def bands(self) -> list[dict[str, Any]]:
        """Pairs and mean trigram overlap of each band, of all scored pairs and of kept ones."""
        if not self.has("paraphrase_score", "overlap_3"):
            return []
        cases = []
        for index, (low, high) in enumerate(itertools.pairwise(BAND_EDGES)):
            cases.append(f"WHEN {Band(low, high).condition('paraphrase_score')} THEN {index}")
        found = self.rows(
            f"SELECT CASE {' '.join(cases)} END AS band, "
            "count(*) AS pairs, avg(overlap_3::DOUBLE) AS overlap, "
            "count(*) FILTER (kept) AS kept, avg(overlap_3::DOUBLE) FILTER (kept) AS kept_overlap "
            f"FROM ({self._union('paraphrase_score', 'overlap_3', where=_SCORED)}) "
            "GROUP BY band"
        )
        by_band = {row["band"]: row for row in found}
        nothing = {"pairs": 0, "overlap": None, "kept": 0, "kept_overlap": None}
        return [by_band.get(index, nothing) for index in range(len(BANDS))]

    def means(self) -> list[tuple[str, float | None, float | None]]:
        """Means over kept and over refused pairs."""
        wanted = [(column, name) for column, name in _MEANS if self.has(column)]
        if not wanted:
            return []
        sums = ", ".join(f"avg({column}::DOUBLE) AS {column}" for column, _ in wanted)
        sides: dict[str, dict[str, Any]] = {
            view: self.rows(f"SELECT {sums} FROM {view}")[0] for view, _ in self.parts
        }
        refused = sides.get("rejected", {})
        return [(name, sides[KEPT][column], refused.get(column)) for column, name in wanted]
