"""Statistics of a corpus: sources (ParaNMT Table 1), score bands (Table 3), histograms, deciles."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.errors import InputError
from paraforge.selection.filters import numbers
from paraforge.selection.sampling import sampling_keys
from paraforge.shards.resources import Resources
from paraforge.shards.scheduler import Jobs, open_jobs
from paraforge.shards.store import ShardDirectory, ShardView, read_aligned, read_parquet, read_schema
from paraforge.statistics.counts import (
    SCALES,
    Decile,
    Figures,
    Moments,
    added,
    by_source,
    decile_figures,
    figures_of,
    merge_deciles,
    rounded,
)
from paraforge.statistics.parameters import BackgroundParameters, StatisticsParameters, located
from paraforge.statistics.parses import Row, parse_with_stanza, read_parses
from paraforge.text.idf import (
    Background,
    background_of_frequencies,
    background_of_sentences,
    count_documents,
    entropy,
    sentence_means,
)
from paraforge.text.tokens import TokenColumn, tokenize_column

logger = logging.getLogger(__name__)

Keys = npt.NDArray[np.uint64]

NO_PARSES = "no parses: statistics.parses names no file and statistics.parser no library"
# Sampling for the background must not follow the sampling for Table 1.
_BACKGROUND_SEED = 0x1DF


@dataclass
class SampledSource:
    """References of one source drawn for Table 1.

    Attributes:
        tokens: of each reference, over a vocabulary of its own.
        lines: line of each in its source.
        scores: paraphrase score of each, NaN where it has none.
    """

    tokens: TokenColumn
    lines: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


@dataclass
class Statistics:
    """All that is told of a corpus.

    Attributes:
        sources: rows of Table 1, by source; ``pairs`` counts all pairs, the rest is of the sample.
        figures: bands, histograms and heat map, by source.
        deciles: moments of the averaged columns, by ranking score and tenth.
        sample: sentences of the sample, at most, of a source.
        background: what the IDF was taken over: name and sentences.
        parse_entropy_missing: why there is no parse entropy, or None where there is.
    """

    sources: dict[str, dict[str, Any]]
    figures: dict[str, Figures]
    deciles: dict[Decile, dict[str, Moments]]
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
    deciles: dict[Decile, dict[str, Moments]] = field(default_factory=dict)
    keys: dict[str, Keys] = field(default_factory=dict)
    background_keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))


def describe_corpus(
    inputs: Sequence[Path],
    selected: Path | None,
    parameters: StatisticsParameters,
    resources: Resources,
) -> Statistics:
    """Describe every pair that has a translation: those that ingest refused or that failed are passed over.

    Of an n-best list the best hypothesis is taken.

    Args:
        inputs: row-aligned shard directories, such as data/translated and data/scored.
        selected: data/selected, for the deciles; None for none.
        parameters: samples, background, parses.
        resources: where to run.

    Raises:
        InputError: the corpus has no pair; a background or parse file is missing or malformed.
    """
    view = ShardView(*inputs)
    # Small files first: a mistake in them is told before any work.
    background = _background_file(parameters.background)
    for file in parameters.parses:
        if not located(file.path).is_file():
            raise InputError("no such file of parses", located(file.path))
    shards = _shard_paths(view, selected)
    with open_jobs(resources, view.total_rows) as jobs:
        merged = _first_pass(shards, view.rows, parameters, background is None, jobs)
        if not merged.figures:
            raise InputError("no pair has a translation: there is nothing to describe", inputs[0])
        limits = {source: _limit(keys, parameters.sample) for source, keys in merged.keys.items()}
        if background is None:
            number = parameters.background.references
            limit = None if number is None else _limit(merged.background_keys, number)
            background = _background_of_references(shards, view.rows, parameters.seed, limit, jobs)
        sampled = _sample(shards, view.rows, parameters.seed, limits, jobs)
    wanted = {source: set(one.lines.tolist()) for source, one in sampled.items()}
    parses = read_parses(parameters.parses, wanted)
    missing: str | None = NO_PARSES
    if parameters.parses or parameters.parser:
        missing = None
    sources = {}
    for source in sorted(sampled):
        if parameters.parser == "stanza":
            _parse_rest(source, sampled[source], parses)
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


def describe_sample(
    sample: SampledSource,
    background: Background,
    source: str,
    parses: Mapping[Row, str],
    parses_missing: str | None,
) -> dict[str, Any]:
    """One row of Table 1: means with standard deviations, entropies in nats."""
    lengths = Moments.of(sample.tokens.lengths.astype(np.float64))
    idf = sentence_means(sample.tokens, background.idf(sample.tokens.vocabulary))
    idf_moments = Moments.of(idf[~np.isnan(idf)])
    scores = Moments.of(sample.scores[~np.isnan(sample.scores)])
    words = np.bincount(sample.tokens.ids, minlength=len(sample.tokens.vocabulary))
    trees: dict[str, int] = {}
    for line in sample.lines.tolist():
        tree = parses.get((source, line))
        if tree is not None:
            trees[tree] = trees.get(tree, 0) + 1
    missing = parses_missing or (None if trees else "no sentence of the sample has a parse")
    return {
        "sample": len(sample.lines),
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
        "parsed": sum(trees.values()),
        "parse_entropy_missing": missing,
    }


def _parse_rest(source: str, sample: SampledSource, parses: dict[Row, str]) -> None:
    """Parse what no file has a parse of."""
    left = [row for row, line in enumerate(sample.lines.tolist()) if (source, line) not in parses]
    left = [row for row in left if sample.tokens.offsets[row + 1] > sample.tokens.offsets[row]]
    found = parse_with_stanza(sample.tokens.row(row) for row in left)
    parses.update({(source, int(sample.lines[row])): tree for row, tree in zip(left, found, strict=True)})


Paths = tuple[tuple[Path, ...], Path | None]


def _shard_paths(view: ShardView, selected: Path | None) -> list[Paths]:
    """The files of each shard, and its file in data/selected."""
    chosen: list[Path | None] = [None] * len(view)
    if selected is not None:
        directory = ShardDirectory(selected)
        if directory.rows != view.rows:
            raise InputError(
                "its shards are not aligned with the corpus", selected, remedy="Run 'dvc repro'."
            )
        chosen = list(directory.paths)
    files = [tuple(path.resolve() for path in view.shard_paths(index)) for index in range(len(view))]
    return [(paths, None if one is None else one.resolve()) for paths, one in zip(files, chosen, strict=True)]


_FATE = ("rejected", "failed", "rank")


@lru_cache(maxsize=64)
def schema_names(path: Path) -> tuple[str, ...]:
    """Columns of a Parquet file.

    Raises:
        InputError: it cannot be read.
    """
    return tuple(read_schema(path).names)


def read_pairs(paths: Paths, columns: Iterable[str]) -> pa.Table:
    """The rows of a shard that have a translation; ``columns`` that there are not are left out."""
    files, selected = paths
    there = {name for path in files for name in schema_names(path)}
    wanted = [name for name in dict.fromkeys(columns) if name in there]
    table = read_aligned(files, [*wanted, *(name for name in _FATE if name in there and name not in wanted)])
    keep = pa.repeat(True, table.num_rows)
    for name in ("rejected", "failed"):
        if name in there:
            keep = pc.and_(keep, table[name].is_null())
    if "rank" in there:
        keep = pc.and_(keep, pc.equal(pc.fill_null(table["rank"], 0), 0))
    table = table.select(wanted)
    if selected is not None:
        deciles = read_parquet(selected)
        for name in deciles.column_names:
            if name.endswith("_decile"):
                table = table.append_column(name, deciles[name])
    return table.filter(keep)


def _smallest(keys: Keys, size: int | None) -> Keys:
    if size is None or len(keys) <= size:
        return keys
    return np.partition(keys, size - 1)[:size]


def _limit(keys: Keys, size: int | None) -> int:
    """The largest key of a sample of ``size`` rows; ``keys`` has the smallest ``size`` of them at least."""
    chosen = _smallest(keys, size)
    return int(chosen.max()) if len(chosen) else 0


_LINEAGE = ("source", "line", "rank")


def _keys(table: pa.Table, seed: int) -> Keys:
    return sampling_keys(table.select([name for name in _LINEAGE if name in table.column_names]), seed)


def describe_shard(
    paths: Paths, sample: int, background: int | None, seed: int, with_background: bool
) -> _Shard:
    """The first pass over a shard: figures, and candidates for the samples."""
    table = read_pairs(paths, [*_LINEAGE, *SCALES])
    result = _Shard(deciles=decile_figures(table))
    for source, rows in by_source(table).items():
        result.figures[source] = figures_of(rows)
        result.keys[source] = _smallest(_keys(rows, seed), sample)
    if with_background and background is not None:
        result.background_keys = _smallest(_keys(table, seed ^ _BACKGROUND_SEED), background)
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
    done = jobs.run(describe_shard, arguments, description="statistics: figures", unit="rows", sizes=rows)
    for _, shard in done:
        merge_deciles(total.deciles, shard.deciles)
        for source, figures in shard.figures.items():
            total.figures.setdefault(source, Figures()).add(figures)
        for source, keys in shard.keys.items():
            known = total.keys.get(source, keys[:0])
            total.keys[source] = _smallest(np.concatenate([known, keys]), parameters.sample)
        total.background_keys = _smallest(
            np.concatenate([total.background_keys, shard.background_keys]), references
        )
    return total


def _background_file(parameters: BackgroundParameters) -> Background | None:
    """The background that a file gives, or None where it is the corpus' references."""
    if parameters.path is None:
        return None
    path = located(parameters.path)
    if parameters.format == "sentences":
        return background_of_sentences(path)
    return background_of_frequencies(path, parameters.counted_sentences)


def count_shard_background(paths: Paths, seed: int, limit: int | None) -> tuple[int, dict[str, int]]:
    """Sentences of a shard that are in the background, and in how many each word stands."""
    table = read_pairs(paths, [*_LINEAGE, "reference"])
    if limit is not None:
        table = table.filter(pa.array(_keys(table, seed ^ _BACKGROUND_SEED) <= np.uint64(limit)))
    return table.num_rows, count_documents(tokenize_column(table["reference"]))


def _background_of_references(
    shards: Sequence[Paths], rows: Sequence[int], seed: int, limit: int | None, jobs: Jobs
) -> Background:
    counts: dict[str, int] = {}
    documents = 0
    arguments = [(paths, seed, limit) for paths in shards]
    run = partial(jobs.run, description="statistics: background", unit="rows", sizes=rows)
    for _, (sentences, found) in run(count_shard_background, arguments):
        documents += sentences
        for word, count in found.items():
            counts[word] = counts.get(word, 0) + count
    return Background("references", documents, counts)


@dataclass
class _Drawn:
    """A shard's part of a source's sample, as plain arrays."""

    tokens: TokenColumn
    lines: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


def draw_shard(paths: Paths, seed: int, limits: Mapping[str, int]) -> dict[str, _Drawn]:
    """The rows of a shard that are in the samples, tokenised."""
    table = read_pairs(paths, [*_LINEAGE, "reference", "paraphrase_score"])
    result = {}
    for source, rows in by_source(table).items():
        drawn = rows.filter(pa.array(_keys(rows, seed) <= np.uint64(limits[source])))
        scores = np.full(drawn.num_rows, np.nan)
        if "paraphrase_score" in drawn.column_names:
            values, missing = numbers(drawn["paraphrase_score"])
            scores = np.where(missing, np.nan, values.astype(np.float64))
        lines = drawn["line"].to_numpy()
        result[source] = _Drawn(tokenize_column(drawn["reference"]), lines, scores)
    return result


def _sample(
    shards: Sequence[Paths], rows: Sequence[int], seed: int, limits: Mapping[str, int], jobs: Jobs
) -> dict[str, SampledSource]:
    parts: dict[str, dict[int, _Drawn]] = {source: {} for source in limits}
    arguments = [(paths, seed, dict(limits)) for paths in shards]
    done = jobs.run(draw_shard, arguments, description="statistics: sample", unit="rows", sizes=rows)
    for index, drawn in done:
        for source, part in drawn.items():
            parts[source][index] = part
    return {
        source: SampledSource(
            join_columns([pieces[index].tokens for index in sorted(pieces)]),
            np.concatenate([pieces[index].lines for index in sorted(pieces)]),
            np.concatenate([pieces[index].scores for index in sorted(pieces)]),
        )
        for source, pieces in parts.items()
    }


def join_columns(columns: Sequence[TokenColumn]) -> TokenColumn:
    """Token columns one after the other, over one vocabulary without words that do not occur."""
    vocabulary: dict[str, int] = {}
    ids = []
    offsets = [np.zeros(1, np.int64)]
    end = 0
    for column in columns:
        used = np.unique(column.ids)
        mapping = np.zeros(len(column.vocabulary), np.int32)
        for word in used.tolist():
            mapping[word] = vocabulary.setdefault(column.vocabulary[word], len(vocabulary))
        ids.append(mapping[column.ids])
        offsets.append(column.offsets[1:] + end)
        end += len(column.ids)
    joined = np.concatenate(ids) if ids else np.zeros(0, np.int32)
    return TokenColumn(joined, np.concatenate(offsets), list(vocabulary))
