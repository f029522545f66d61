"""Writes statistics as tables, for metrics, plots and Parquet files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.files import write_csv
from paraforge.base.shards.store import write_parquet
from paraforge.base.shards.work import replaced_directory
from paraforge.corpus.columns import AVERAGED, SCALES
from paraforge.corpus.statistics.counts import Figures, means_of, plain_bands
from paraforge.corpus.statistics.statistics import Decile, Statistics

ALL = "all"

Rows = list[dict[str, Any]]

_TEXTS = ("source", "band", "column", "score", "parse_entropy_missing")
_COUNTS = ("pairs", "sample", "scored", "vocabulary", "parsed", "decile")


def _schema(*names: str) -> pa.Schema:
    """Types of columns by name; all others are figures."""
    kinds = dict.fromkeys(_TEXTS, pa.string()) | dict.fromkeys(_COUNTS, pa.int64())
    return pa.schema([(name, kinds.get(name, pa.float64())) for name in names])


BANDS_SCHEMA = _schema("source", "band", "pairs", "overlap_3", "overlap_3_sd")
HISTOGRAMS_SCHEMA = _schema("source", "column", "low", "high", "pairs")
DECILES_SCHEMA = _schema(
    "score", "decile", "pairs", *(f"{name}{end}" for name in AVERAGED for end in ("", "_sd"))
)


def source_rows(statistics: Statistics) -> Rows:
    """Return ParaNMT's Table 1, one row per source."""
    return [{"source": source, **row} for source, row in statistics.sources.items()]


def band_rows(statistics: Statistics) -> Rows:
    """Return ParaNMT's Table 3 for all sources together, then for each."""
    figures = {ALL: statistics.total, **statistics.figures}
    return [{"source": source, **band} for source, one in figures.items() for band in plain_bands(one)]


def histogram_rows(statistics: Statistics) -> Rows:
    """Return the pairs per bin of each column, by source; the outer bins include values outside the scale."""
    rows = []
    for source, figures in statistics.figures.items():
        for column, counts in figures.histograms.items():
            edges = SCALES[column].edges
            for low, high, pairs in zip(edges[:-1], edges[1:], counts.tolist(), strict=True):
                rows.append({"source": source, "column": column, "low": low, "high": high, "pairs": pairs})
    return rows


def decile_rows(deciles: Mapping[Decile, Figures]) -> Rows:
    """Return means and standard deviations of each decile of each ranking score; decile 1 is the lowest."""
    return [
        {"score": score, "decile": tenth, "pairs": figures.pairs, **means_of(figures.sums)}
        for (score, tenth), figures in sorted(deciles.items(), key=lambda item: item[0])
    ]


def metrics(statistics: Statistics) -> dict[str, Any]:
    """Return the content of ``metrics/statistics.json``: Tables 1 and 3 and the deciles."""
    bands = {row.pop("band"): row for row in plain_bands(statistics.total)}
    return {
        "pairs": sum(figures.pairs for figures in statistics.figures.values()),
        "sample": statistics.sample,
        "background": statistics.background,
        "parse_entropy_missing": statistics.parse_entropy_missing,
        "sources": statistics.sources,
        "bands": bands,
        "deciles": decile_rows(statistics.deciles),
    }


def write_tables(statistics: Statistics, directory: Path, plots: Path) -> None:
    """Write the Parquet tables into ``directory`` (replaced as a whole) and CSV files for plots."""
    sources = source_rows(statistics)
    tables: dict[str, tuple[Rows, pa.Schema]] = {
        "sources": (sources, _schema(*sources[0])),
        "bands": (band_rows(statistics), BANDS_SCHEMA),
        "histograms": (histogram_rows(statistics), HISTOGRAMS_SCHEMA),
        "deciles": (decile_rows(statistics.deciles), DECILES_SCHEMA),
    }
    with replaced_directory(directory) as temporary:
        for name, (rows, schema) in tables.items():
            write_parquet(pa.Table.from_pylist(rows, schema=schema), temporary / f"{name}.parquet")
    for name in ("sources", "histograms", "deciles"):
        rows, schema = tables[name]
        write_csv(plots / f"statistics_{name}.csv", schema.names, rows)
    write_csv(plots / "statistics_bands.csv", BANDS_SCHEMA.names, tables["bands"][0])
