"""Statistics of a corpus: sources (ParaNMT Table 1), score bands (Table 3), histograms, deciles."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.parsing.parser import open_parser
from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Jobs, open_jobs
from paraforge.base.shards.store import ShardView
from paraforge.base.text.idf import (
    Background,
    background_of_frequencies,
    background_of_sentences,
    count_documents,
)
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.columns import AVERAGED
from paraforge.corpus.statistics.counts import (
    Decile,
    Figures,
    add_by_key,
    added,
    by_source,
    decile_figures,
    figures_of,
)
from paraforge.corpus.statistics.pairs import (
    Keys,
    Paths,
    files_of,
    limit_of,
    read_pairs,
    shard_paths,
    smallest,
)
from paraforge.corpus.statistics.parameters import BackgroundParameters, StatisticsParameters, located
from paraforge.corpus.statistics.samples import describe_sample, parse_samples, sample_references

# Sampling for the background must not follow the sampling for Table 1.
BACKGROUND_SEED = 0x1DF
NO_PARSES = "no parses: statistics.parser names no parser"


@dataclass
class Statistics:
    """Everything that is reported of a corpus.

    sources: rows of Table 1, by source; ``pairs`` counts all pairs, the rest is of the sample.
    figures: bands, histograms and heat map, by source.
    deciles: figures by ranking score and tenth.
    sample: sentences of the sample, at most, of a source.
    background: the corpus that the IDF was computed from: name and number of sentences.
    parse_entropy_missing: why there is no parse entropy, or None where there is.
    """

    sources: dict[str, dict[str, Any]]
    figures: dict[str, Figures]
    deciles: dict[Decile, Figures]
    sample: int
    background: dict[str, Any]
    parse_entropy_missing: str | None

    @property
    def total(self) -> Figures:
        """The figures of all sources together."""
        return added(self.figures.values())


@dataclass
class _Shard:
    """What one shard adds: figures, and the smallest sampling keys of each source."""

    figures: dict[str, Figures] = field(default_factory=dict)
    deciles: dict[Decile, Figures] = field(default_factory=dict)
    keys: dict[str, Keys] = field(default_factory=dict)
    background_keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))


def describe_corpus(
    inputs: Sequence[Path], selected: Path | None, parameters: StatisticsParameters, resources: Resources
) -> Statistics:
    """Describe every pair that has a translation: those that ingest rejected or that failed are passed over.

    Of an n-best list the best hypothesis is taken.

    inputs: row-aligned shard directories, such as data/translated and data/scored.
    selected: data/selected, for the deciles; None for none. parameters: samples, background, parser.
    resources: where to run.

    Raises InputError: the corpus has no pair, a background file is missing or malformed, or there is no
    such parser.
    """
    view = ShardView(*inputs)
    # Small files first: a mistake in them is reported before any work.
    background = background_file(parameters.background)
    if parameters.parser is not None:
        open_parser(parameters.parser)
    shards = shard_paths(view, selected)
    with open_jobs(resources, view.total_rows, travels=True) as jobs:
        merged = _first_pass(shards, view.rows, parameters, background is None, jobs)
        if not merged.figures:
            raise InputError("no pair has a translation: there is nothing to describe", inputs[0])
        limits = {source: limit_of(keys, parameters.sample) for source, keys in merged.keys.items()}
        if background is None:
            number = parameters.background.references
            limit = None if number is None else limit_of(merged.background_keys, number)
            background = background_of_references(shards, view.rows, parameters.seed, limit, jobs)
        sampled = sample_references(
            shards, view.rows, parameters.seed, limits, jobs, with_texts=parameters.parser is not None
        )
    parser = parameters.parser
    parses = {} if parser is None else parse_samples(sampled, parser, resources)
    missing = NO_PARSES if parser is None else None
    sources = {}
    for source in sorted(sampled):
        sources[source] = {
            "pairs": merged.figures[source].pairs,
            **describe_sample(sampled[source], background, source, parses, missing),
        }
    return Statistics(
        sources=sources,
        figures=dict(sorted(merged.figures.items())),
        deciles=merged.deciles,
        sample=parameters.sample,
        background={"name": background.name, "sentences": background.documents},
        parse_entropy_missing=missing,
    )


def describe_shard(
    paths: Paths, sample: int, background: int | None, seed: int, with_background: bool
) -> _Shard:
    """The first pass over a shard: figures, and candidates for the samples."""
    table = read_pairs(paths, [*LINEAGE, *AVERAGED])
    result = _Shard(deciles=decile_figures(table))
    for source, rows in by_source(table).items():
        result.figures[source] = figures_of(rows)
        result.keys[source] = smallest(sampling_keys(rows, seed), sample)
    if with_background and background is not None:
        result.background_keys = smallest(sampling_keys(table, seed ^ BACKGROUND_SEED), background)
    return result


def _first_pass(
    shards: Sequence[Paths],
    rows: Sequence[int],
    parameters: StatisticsParameters,
    with_background: bool,
    jobs: Jobs,
) -> _Shard:
    references = parameters.background.references
    total = _Shard()
    arguments = [(paths, parameters.sample, references, parameters.seed, with_background) for paths in shards]
    display = {"description": "statistics: figures", "unit": "rows", "sizes": rows}
    done = jobs.run(describe_shard, arguments, files=files_of(shards), **display)
    for _, shard in done:
        add_by_key(total.deciles, shard.deciles)
        add_by_key(total.figures, shard.figures)
        for source, keys in shard.keys.items():
            known = total.keys.get(source, keys[:0])
            total.keys[source] = smallest(np.concatenate([known, keys]), parameters.sample)
        total.background_keys = smallest(
            np.concatenate([total.background_keys, shard.background_keys]), references
        )
    return total


def background_file(parameters: BackgroundParameters) -> Background | None:
    """The background that a file gives, or None where it is the corpus' references."""
    if parameters.path is None:
        return None
    path = located(parameters.path)
    if parameters.format == "sentences":
        return background_of_sentences(path)
    return background_of_frequencies(path, parameters.counted_sentences)


def count_shard_background(paths: Paths, seed: int, limit: int | None) -> tuple[int, dict[str, int]]:
    """Sentences of a shard that are in the background, and in how many each word occurs."""
    table = read_pairs(paths, [*LINEAGE, "reference"])
    if limit is not None:
        table = table.filter(pa.array(sampling_keys(table, seed ^ BACKGROUND_SEED) <= np.uint64(limit)))
    return table.num_rows, count_documents(tokenize_column(table["reference"]))


def background_of_references(
    shards: Sequence[Paths], rows: Sequence[int], seed: int, limit: int | None, jobs: Jobs
) -> Background:
    counts: dict[str, int] = {}
    documents = 0
    arguments = [(paths, seed, limit) for paths in shards]
    run = partial(jobs.run, description="statistics: background", unit="rows", sizes=rows)
    for _, (sentences, found) in run(count_shard_background, arguments, files=files_of(shards)):
        documents += sentences
        for word, count in found.items():
            counts[word] = counts.get(word, 0) + count
    return Background("references", documents, counts)
