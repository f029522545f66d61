"""Computes the statistics of a corpus: sources (ParaNMT Table 1), score bands (Table 3), histograms,
deciles."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.parsing.brackets import top_two_levels
from paraforge.base.parsing.parse import Parses, parse_sentences
from paraforge.base.parsing.parser import open_parser
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import LINEAGE, Smallest, sampling_keys
from paraforge.base.shards.pool import in_order, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FATE_COLUMNS, alive_rows
from paraforge.base.shards.store import ShardDirectory, ShardView
from paraforge.base.text.idf import (
    Background,
    background_of_sentences,
    count_documents,
    entropy,
    sentence_means,
)
from paraforge.base.text.paths import expand
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.columns import AVERAGED
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.statistics.counts import Figures, Moments, added, by_source, figures_of, rounded
from paraforge.corpus.statistics.parameters import StatisticsParameters

# The background's sample must be independent of Table 1's.
BACKGROUND_SEED = 0x1DF
NO_PARSES = "no parses: statistics.parser names no parser"
_COUNTED_AT_ONCE = 50_000

Decile = tuple[str, int]
"""The ranking score's column, and the decile from 1, the lowest."""
_Described = tuple[Figures, pa.Table]


@dataclass
class Statistics:
    """Everything reported about a corpus.

    sources: rows of Table 1, by source; ``pairs`` counts all pairs, the rest describes the sample.
    figures: bands, histograms and heat map, by source.
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
    inputs: Sequence[Path], selected: Path | None, parameters: StatisticsParameters, resources: Resources
) -> Statistics:
    """Describe all pairs that have a translation, in one pass over the shards.

    Rows that failed or that ingest rejected are skipped. Only the best hypothesis of an n-best list counts.

    inputs: row-aligned shard directories, such as data/translated and data/scored.
    selected: data/selected, for the deciles, or None. parameters: samples, background, parser.
    resources: threads, and where parses are kept.

    Raises InputError if the corpus has no pair, the background file is missing or malformed, or the parser is
    not known.
    """
    pairs = _Pairs(inputs, selected)
    # Small files first, so that mistakes in them are reported before any work.
    path = parameters.background.path
    background = None if path is None else background_of_sentences(Path(expand(path)))
    if parameters.parser is not None:
        open_parser(parameters.parser)
    figures: defaultdict[str, Figures] = defaultdict(Figures)
    deciles: defaultdict[Decile, Figures] = defaultdict(Figures)
    samples: defaultdict[str, Smallest] = defaultdict(lambda: Smallest(parameters.sample))
    references = Smallest(parameters.background.references)
    threads = threads_for(resources, pairs.view.total_rows)

    def describe(index: int) -> tuple[dict[str, _Described], pa.Table | None, dict[Decile, Figures]]:
        """Results of a shard: figures and candidate rows by source, candidate references, figures of
        deciles."""
        rows = pairs.read(index)
        kept = [name for name in ("reference", "paraphrase_score") if name in rows.column_names]
        named = {
            source: (figures_of(some), _with_key(some, kept, parameters.seed))
            for source, some in by_source(rows).items()
        }
        drawn = (
            _with_key(rows, ["reference"], parameters.seed ^ BACKGROUND_SEED) if background is None else None
        )
        return named, drawn, _decile_figures(rows)

    with progress(total=pairs.view.total_rows, unit="rows", description="statistics") as bar:
        for index, (named, drawn, tenths) in enumerate(in_order(describe, len(pairs.view), threads)):
            for source, (own, rows) in named.items():
                figures[source].add(own)
                samples[source].add(rows)
            if drawn is not None:
                references.add(drawn)
            for decile, one in tenths.items():
                deciles[decile].add(one)
            bar.update(pairs.view.rows[index])
    if not figures:
        raise InputError("no pair has a translation: there is nothing to describe", inputs[0])
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


class _Pairs:
    """Yield the rows of a corpus that have a translation, with the deciles of a selection."""

    def __init__(self, inputs: Sequence[Path], selected: Path | None) -> None:
        self.view = ShardView(*inputs)
        self.selected = None if selected is None else ShardDirectory(selected)
        if self.selected is not None and self.selected.rows != self.view.rows:
            raise InputError(
                "its shards are not aligned with the corpus", self.selected.path, remedy="Run 'dvc repro'."
            )
        wanted = dict.fromkeys([*LINEAGE, "reference", *AVERAGED, *FATE_COLUMNS])
        self.columns = [name for name in wanted if name in self.view.column_names]

    def read(self, index: int) -> pa.Table:
        rows = self.view.read(index, self.columns)
        if self.selected is not None:
            tenths = self.selected.read(index)
            for name in tenths.column_names:
                if name.endswith("_decile"):
                    rows = rows.append_column(name, tenths[name])
        keep = alive_rows(rows)
        if "rank" in rows.column_names:
            keep = pc.and_(keep, pc.equal(pc.fill_null(rows["rank"], 0), 0))
        return rows.filter(keep)


def _with_key(rows: pa.Table, columns: Sequence[str], seed: int) -> pa.Table:
    return rows.select(columns).append_column("key", pa.array(sampling_keys(rows, seed)))


def _decile_figures(rows: pa.Table) -> dict[Decile, Figures]:
    """Compute the figures of each decile of each ``SCORE_decile`` column."""
    return {
        (ranking.removesuffix("_decile"), tenth): figures_of(rows.filter(pc.equal(rows[ranking], tenth)))
        for ranking in rows.column_names
        if ranking.endswith("_decile")
        for tenth in range(1, 11)
    }


def _background_of(references: pa.ChunkedArray) -> Background:
    counts: Counter[str] = Counter()
    for first in range(0, len(references), _COUNTED_AT_ONCE):
        counts.update(count_documents(tokenize_column(references.slice(first, _COUNTED_AT_ONCE))))
    return Background("references", len(references), counts)


def _describe_sample(rows: pa.Table, background: Background, parses: Parses | None) -> dict[str, Any]:
    """Compute a row of Table 1 without its number of pairs: means with standard deviations, entropies in
    nats."""
    tokens = tokenize_column(rows["reference"])
    lengths = Moments.of(tokens.lengths.astype(np.float64))
    idf = sentence_means(tokens, background.idf(tokens.vocabulary))
    idf_moments = Moments.of(idf[~np.isnan(idf)])
    scores = Moments()
    if "paraphrase_score" in rows.column_names:
        values, unscored = numbers(rows["paraphrase_score"])
        scores = Moments.of(values[~unscored].astype(np.float64))
    words = np.bincount(tokens.ids, minlength=len(tokens.vocabulary))
    trees: Counter[str] = Counter()
    missing: str | None = NO_PARSES
    if parses is not None:
        found = parses.of(rows["reference"]).to_pylist()
        trees.update(top_two_levels(tree) for tree in found if tree is not None)
        missing = None if trees else "no sentence of the sample has a parse"
    return {
        "sample": rows.num_rows,
        "length": rounded(lengths.mean),
        "length_sd": rounded(lengths.deviation),
        "idf": rounded(idf_moments.mean),
        "idf_sd": rounded(idf_moments.deviation),
        "paraphrase_score": rounded(scores.mean),
        "paraphrase_score_sd": rounded(scores.deviation),
        "scored": scores.number,
        "vocabulary_entropy": rounded(entropy(words.tolist())),
        "vocabulary": int((words > 0).sum()),
        "parse_entropy": rounded(entropy(trees.values())) if trees else None,
        "parsed": trees.total(),
        "parse_entropy_missing": missing,
    }
