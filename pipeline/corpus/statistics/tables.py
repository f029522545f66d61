"""Writes statistics as tables, for metrics, plots and Parquet files."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.files import write_csv
from paraforge.base.shards.store import write_parquet
from paraforge.base.shards.work import replaced_directory
from paraforge.corpus.columns import AVERAGED, SCALES
from paraforge.corpus.statistics.counts import BANDS, Figures, deviation_of, means_of, rounded_mean_of
from paraforge.corpus.statistics.statistics import Statistics

ALL = "all sources"  # no source can have this name

Rows = list[dict[str, Any]]

_COLUMNS = {
    "bands": ["source", "band", "pairs", "overlap_3", "overlap_3_sd"],
    "histograms": ["source", "column", "low", "high", "pairs"],
    "deciles": ["score", "decile", "pairs", *(f"{name}{end}" for name in AVERAGED for end in ("", "_sd"))],
}
# Types of columns by name; all others are figures.
_TYPES = {
    **dict.fromkeys(("source", "band", "column", "score", "parse_entropy_missing"), pa.string()),
    **dict.fromkeys(("pairs", "sample", "scored", "vocabulary", "parsed", "decile"), pa.int64()),
}


def _bands(figures: Figures) -> Rows:
    """Return ParaNMT's Table 3: pairs in each band, mean and standard deviation of the trigram overlap."""
    return [
        {
            "band": band,
            "pairs": int(pairs),
            "overlap_3": rounded_mean_of(sums),
            "overlap_3_sd": deviation_of(sums),
        }
        for band, pairs, sums in zip(BANDS, figures.band_pairs, figures.band_overlaps, strict=True)
    ]


def _histograms(source: str, figures: Figures) -> Rows:
    """Return the pairs per bin of each column; the outer bins include values outside the scale."""
    return [
        {"source": source, "column": column, "low": low, "high": high, "pairs": pairs}
        for column, counts in figures.histograms.items()
        for edges in [SCALES[column].edges]
        for low, high, pairs in zip(edges[:-1], edges[1:], counts.tolist(), strict=True)
    ]


def _deciles(statistics: Statistics) -> Rows:
    """Return means and standard deviations of each decile of each ranking score; decile 1 is the lowest."""
    return [
        {"score": score, "decile": tenth, "pairs": figures.pairs, **means_of(figures.sums)}
        for (score, tenth), figures in sorted(statistics.deciles.items(), key=lambda item: item[0])
    ]


def metrics(statistics: Statistics) -> dict[str, Any]:
    """Return the content of ``metrics/statistics.json``: Tables 1 and 3 and the deciles."""
    return {
        "pairs": statistics.total.pairs,
        "sample": statistics.sample,
        "background": statistics.background,
        "parse_entropy_missing": statistics.parse_entropy_missing,
        "sources": statistics.sources,
        "bands": {row.pop("band"): row for row in _bands(statistics.total)},
        "deciles": _deciles(statistics),
    }


def write_tables(statistics: Statistics, directory: Path, plots: Path) -> None:
    """Write the tables as Parquet into ``directory`` (replaced as a whole) and as CSV files for plots:
    ParaNMT's Tables 1 and 3 (the latter for all sources together, then for each), histograms and deciles."""
    by_source = statistics.figures.items()
    tables = {
        "sources": [{"source": source, **row} for source, row in statistics.sources.items()],
        "bands": [
            {"source": source, **row}
            for source, figures in [(ALL, statistics.total), *by_source]
            for row in _bands(figures)
        ],
        "histograms": [row for source, figures in by_source for row in _histograms(source, figures)],
        "deciles": _deciles(statistics),
    }
    with replaced_directory(directory) as temporary:
        for name, rows in tables.items():
            columns = _COLUMNS.get(name, [*rows[0]])
            schema = pa.schema([(column, _TYPES.get(column, pa.float64())) for column in columns])
            write_parquet(pa.Table.from_pylist(rows, schema=schema), temporary / f"{name}.parquet")
            write_csv(plots / f"statistics_{name}.csv", columns, rows)
