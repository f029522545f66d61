"""Computes the statistics of a corpus: sources (ParaNMT Table 1), score bands (Table 3), histograms, deciles;
and writes them as tables, for metrics, plots and Parquet files."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.files import write_csv
from paraforge.base.parsing.brackets import top_two_levels
from paraforge.base.parsing.parse import Parses, parse_sentences
from paraforge.base.parsing.parser import open_parser
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import LINEAGE, Smallest, sampling_keys
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FATE_COLUMNS, alive_rows
from paraforge.base.shards.store import ShardDirectory, ShardView, write_parquet
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.idf import (
    Background,
    background_of_sentences,
    count_documents,
    entropy,
    sentence_means,
)
from paraforge.base.text.paths import expand
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.columns import AVERAGED, SCALES
from paraforge.corpus.scoring.pairs import by_source
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.statistics.counts import (
    BANDS,
    Figures,
    added,
    deviation_of,
    figures_of,
    means_of,
    rounded_mean_of,
    sums_of,
)
from paraforge.corpus.statistics.parameters import StatisticsParameters

# The background's sample must be independent of Table 1's.
BACKGROUND_SEED = 0x1DF
NO_PARSES = "no parses: statistics.parser names no parser"
_COUNTED_AT_ONCE = 50_000

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

Decile = tuple[str, int]
"""The ranking score's column, and the decile from 1, the lowest."""


@dataclass
class Statistics:
    """Everything reported about a corpus.

    sources: rows of Table 1, by source; ``pairs`` counts all pairs, the rest describes the sample.
    figures: bands and histograms, by source.
    deciles: figures by ranking score and decile. sample: most sentences sampled from a source.
    background: name and number of sentences of the corpus for the IDF.
    parse_entropy_missing: why there is no parse entropy, or None if there is one.
    """

    sources: dict[str, dict[str, Any]]
    figures: dict[str, Figures]
    deciles: dict[Decile, Figures]
    sample: int
    background: dict[str, Any]
    parse_entropy_missing: str | None

    @property
    def total(self) -> Figures:
        """Return the figures of all sources together."""
        return added(self.figures.values())


def describe_corpus(
    inputs: Sequence[Path], selected: Path, parameters: StatisticsParameters, resources: Resources
) -> Statistics:
    """Describe all pairs that have a translation, in one pass over the shards.

    Rows that failed or that ingest rejected are skipped. Only the best hypothesis of an n-best list counts.

    inputs: row-aligned shard directories, such as data/translated and data/scored.
    selected: data/selected, for the deciles. parameters: samples, background, parser.
    resources: threads, and where parses are kept.

    Raises InputError if the corpus has no pair, the background file is missing or malformed, or the parser is
    not known.
    """
    view = ShardView(*inputs)
    tenths = ShardDirectory(selected)
    if tenths.rows != view.rows:
        raise InputError(
            "its shards do not match those of the corpus", tenths.path, remedy="Run 'dvc repro'."
        )
    names = dict.fromkeys([*LINEAGE, "reference", *AVERAGED, *FATE_COLUMNS])
    columns = [name for name in names if name in view.column_names]
    # Small files first, so that mistakes in them are reported before any work.
    path = parameters.background.path
    background = None if path is None else background_of_sentences(Path(expand(path)))
    if parameters.parser is not None:
        open_parser(parameters.parser)
    figures: defaultdict[str, Figures] = defaultdict(Figures)
    deciles: defaultdict[Decile, Figures] = defaultdict(Figures)
    samples: defaultdict[str, Smallest] = defaultdict(lambda: Smallest(parameters.sample))
    references = Smallest(parameters.background.references)
    threads = threads_for(resources, view.total_rows)

    def describe(index: int) -> _ShardFigures:
        rows = view.read(index, columns)
        for name, column in _decile_columns(tenths.read(index)):
            rows = rows.append_column(name, column)
        return _describe_shard(rows, parameters.seed, with_references=background is None)

    with progress(total=view.total_rows, unit="rows", description="statistics") as bar:
        for index, shard in enumerate(in_order(describe, len(view), threads)):
            for source, (own, rows) in shard.by_source.items():
                figures[source].add(own)
                samples[source].add(rows)
            if shard.references is not None:
                references.add(shard.references)
            for decile, decile_figures in shard.by_decile.items():
                deciles[decile].add(decile_figures)
            bar.update(view.rows[index])
    if not figures:
        raise InputError("no pair has a translation, so there are no statistics", inputs[0])
    if background is None:
        background = _background_of(references.rows()["reference"])
    sampled = {source: samples[source].rows() for source in sorted(samples)}
    parses = None
    if parameters.parser is not None:
        texts = [rows["reference"].combine_chunks() for rows in sampled.values()]
        parses = parse_sentences(texts, parameters.parser, resources)
    return Statistics(
        sources={
            source: {"pairs": figures[source].pairs, **_describe_sample(rows, background, parses)}
            for source, rows in sampled.items()
        },
        figures=dict(sorted(figures.items())),
        deciles=dict(deciles),
        sample=parameters.sample,
        background={"name": background.name, "sentences": background.documents},
        parse_entropy_missing=NO_PARSES if parses is None else None,
    )


class _ShardFigures(NamedTuple):
    """The figures of a shard.

    by_source: figures and candidate rows of each source. references: candidate references, or None.
    by_decile: figures of each decile of each ranked score.
    """

    by_source: dict[str, tuple[Figures, pa.Table]]
    references: pa.Table | None
    by_decile: dict[Decile, Figures]


def _describe_shard(rows: pa.Table, seed: int, with_references: bool) -> _ShardFigures:
    """Return the figures of a shard's rows that have a translation, only the best of an n-best list."""
    keep = alive_rows(rows)
    if "rank" in rows.column_names:
        keep = pc.and_(keep, pc.equal(pc.fill_null(rows["rank"], 0), 0))
    rows = rows.filter(keep)
    kept = [name for name in ("reference", "paraphrase_score") if name in rows.column_names]
    return _ShardFigures(
        by_source={
            source: (figures_of(some := rows.take(places)), _with_key(some, kept, seed))
            for source, places in by_source(rows["source"])
        },
        references=_with_key(rows, ["reference"], seed ^ BACKGROUND_SEED) if with_references else None,
        by_decile={
            (ranking.removesuffix("_decile"), tenth): figures_of(rows.filter(pc.equal(column, tenth)))
            for ranking, column in _decile_columns(rows)
            for tenth in range(1, 11)
        },
    )


def _with_key(rows: pa.Table, columns: Sequence[str], seed: int) -> pa.Table:
    return rows.select(columns).append_column("key", pa.array(sampling_keys(rows, seed)))


def _decile_columns(rows: pa.Table) -> list[tuple[str, pa.ChunkedArray]]:
    return [(name, rows[name]) for name in rows.column_names if name.endswith("_decile")]


def _background_of(references: pa.ChunkedArray) -> Background:
    counts: Counter[str] = Counter()
    for first in range(0, len(references), _COUNTED_AT_ONCE):
        counts.update(count_documents(tokenize_column(references.slice(first, _COUNTED_AT_ONCE))))
    return Background("references", len(references), counts)


def _describe_sample(rows: pa.Table, background: Background, parses: Parses | None) -> dict[str, Any]:
    """Compute a row of Table 1 without its number of pairs: means with standard deviations, entropies in
    nats."""
    tokens = tokenize_column(rows["reference"])
    idf = sentence_means(tokens, background.idf(tokens.vocabulary))
    sums = {"length": sums_of(tokens.lengths.astype(np.float64)), "idf": sums_of(idf[~np.isnan(idf)])}
    sums["paraphrase_score"] = np.zeros(3)
    if "paraphrase_score" in rows.column_names:
        values, unscored = numbers(rows["paraphrase_score"])
        sums["paraphrase_score"] = sums_of(values[~unscored].astype(np.float64))
    words = np.bincount(tokens.ids, minlength=len(tokens.vocabulary))
    trees: Counter[str] = Counter()
    missing: str | None = NO_PARSES
    if parses is not None:
        parsed = parses.of(rows["reference"]).to_pylist()
        trees.update(top_two_levels(tree) for tree in parsed if tree is not None)
        missing = None if trees else "no sentence of the sample has a parse"
    return {
        "sample": rows.num_rows,
        **means_of(sums),
        "scored": int(sums["paraphrase_score"][0]),
        "vocabulary_entropy": round(entropy(words.tolist()), 4),
        "vocabulary": int((words > 0).sum()),
        "parse_entropy": round(entropy(trees.values()), 4) if trees else None,
        "parsed": trees.total(),
        "parse_entropy_missing": missing,
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
