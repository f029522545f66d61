"""Statistics as tables of rows: for metrics, plots and Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.files import write_csv
from paraforge.shards.store import write_parquet
from paraforge.shards.work import replaced_directory
from paraforge.statistics.counts import HEAT_X, HEAT_Y, SCALES, Decile, Moments, plain_bands, rounded
from paraforge.statistics.statistics import Statistics

ALL = "all"

Rows = list[dict[str, Any]]

SOURCES_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("pairs", pa.int64()),
        ("sample", pa.int64()),
        ("length", pa.float64()),
        ("length_sd", pa.float64()),
        ("idf", pa.float64()),
        ("idf_sd", pa.float64()),
        ("paraphrase_score", pa.float64()),
        ("paraphrase_score_sd", pa.float64()),
        ("scored", pa.int64()),
        ("vocabulary_entropy", pa.float64()),
        ("vocabulary", pa.int64()),
        ("parse_entropy", pa.float64()),
        ("parsed", pa.int64()),
        ("parse_entropy_missing", pa.string()),
    ]
)
BANDS_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("band", pa.string()),
        ("pairs", pa.int64()),
        ("overlap_3", pa.float64()),
        ("overlap_3_sd", pa.float64()),
    ]
)
HISTOGRAMS_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("column", pa.string()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("pairs", pa.int64()),
    ]
)
HEAT_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("paraphrase_score", pa.float64()),
        ("overlap_3", pa.float64()),
        ("pairs", pa.int64()),
    ]
)
DECILES_SCHEMA = pa.schema(
    [
        ("score", pa.string()),
        ("decile", pa.int64()),
        ("pairs", pa.int64()),
        *((f"{name}{end}", pa.float64()) for name in SCALES for end in ("", "_sd")),
    ]
)


def source_rows(statistics: Statistics) -> Rows:
    """ParaNMT's Table 1, one row a source."""
    return [{"source": source, **row} for source, row in statistics.sources.items()]


def band_rows(statistics: Statistics) -> Rows:
    """ParaNMT's Table 3 for all sources together, then for each."""
    figures = {ALL: statistics.total, **statistics.figures}
    return [{"source": source, **band} for source, one in figures.items() for band in plain_bands(one)]


def histogram_rows(statistics: Statistics) -> Rows:
    """Pairs of each bin of each column, by source; the outer bins include what is outside the scale."""
    rows = []
    for source, figures in statistics.figures.items():
        for column, counts in figures.histograms.items():
            edges = SCALES[column].edges
            for low, high, pairs in zip(edges[:-1], edges[1:], counts.tolist(), strict=True):
                rows.append({"source": source, "column": column, "low": low, "high": high, "pairs": pairs})
    return rows


def heat_rows(statistics: Statistics) -> Iterator[dict[str, Any]]:
    """Pairs by lower edge of paraphrase score and of trigram overlap, by source, without empty cells."""
    for source, figures in statistics.figures.items():
        for x, y in zip(*figures.heat.nonzero(), strict=True):
            yield {
                "source": source,
                "paraphrase_score": HEAT_X.edges[int(x)],
                "overlap_3": HEAT_Y.edges[int(y)],
                "pairs": int(figures.heat[x, y]),
            }


def decile_rows(deciles: Mapping[Decile, Mapping[str, Moments]]) -> Rows:
    """Means and standard deviations of each tenth of each ranking score; tenth 1 is the lowest."""
    rows: Rows = []
    for (score, tenth), columns in sorted(deciles.items()):
        row: dict[str, Any] = {"score": score, "decile": tenth, "pairs": columns["pairs"].number}
        for name, moments in columns.items():
            if name != "pairs":
                row[name] = rounded(moments.mean)
                row[f"{name}_sd"] = rounded(moments.deviation)
        rows.append(row)
    return rows


def metrics(statistics: Statistics) -> dict[str, Any]:
    """What ``metrics/statistics.json`` says: Tables 1 and 3 and the deciles."""
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
    tables: dict[str, tuple[Rows, pa.Schema]] = {
        "sources": (source_rows(statistics), SOURCES_SCHEMA),
        "bands": (band_rows(statistics), BANDS_SCHEMA),
        "histograms": (histogram_rows(statistics), HISTOGRAMS_SCHEMA),
        "heat": (list(heat_rows(statistics)), HEAT_SCHEMA),
        "deciles": (decile_rows(statistics.deciles), DECILES_SCHEMA),
    }
    with replaced_directory(directory) as temporary:
        for name, (rows, schema) in tables.items():
            write_parquet(pa.Table.from_pylist(rows, schema=schema), temporary / f"{name}.parquet")
    for name in ("sources", "histograms", "deciles"):
        rows, schema = tables[name]
        write_csv(plots / f"statistics_{name}.csv", schema.names, rows)
    write_csv(plots / "statistics_bands.csv", BANDS_SCHEMA.names, tables["bands"][0])
