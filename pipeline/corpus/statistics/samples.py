"""A sample of each source's references, and what ParaNMT's Table 1 says of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.parsing.brackets import top_two_levels
from paraforge.base.parsing.parse import parse_sentences
from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Jobs
from paraforge.base.text.idf import Background, entropy, sentence_means
from paraforge.base.text.tokens import TokenColumn, tokenize_column
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.statistics.counts import Moments, by_source, rounded
from paraforge.corpus.statistics.pairs import Paths, files_of, read_pairs

Row = tuple[str, int]
"""Source and line of a pair."""


@dataclass
class SampledSource:
    """References of one source, or of a shard's part of it, drawn for Table 1.

    tokens: of each reference, over a vocabulary of its own. lines: line of each in its source.
    scores: paraphrase score of each, NaN where it has none. texts: unchanged; kept only for a parser.
    """

    tokens: TokenColumn
    lines: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    texts: pa.Array | None = None


def describe_sample(
    sample: SampledSource,
    background: Background,
    source: str,
    parses: Mapping[Row, str],
    parses_missing: str | None,
) -> dict[str, Any]:
    """One row of Table 1: means with standard deviations, entropies in nats."""
    lengths = Moments.of(sample.tokens.lengths.astype(np.float64))
    idf = sentence_means(sample.tokens, background.completed(sample.tokens).idf(sample.tokens.vocabulary))
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


def parse_samples(samples: Mapping[str, SampledSource], parser: str, resources: Resources) -> dict[Row, str]:
    """The top two levels of the parses of the samples' sentences; those without a parse are missing."""
    found = parse_sentences([sample.texts for sample in samples.values()], parser, resources)
    return {
        (source, line): top_two_levels(tree)
        for source, sample in samples.items()
        for line, tree in zip(sample.lines.tolist(), found.of(sample.texts).to_pylist(), strict=True)
        if tree is not None
    }


def draw_shard(
    paths: Paths, seed: int, limits: Mapping[str, int], with_texts: bool
) -> dict[str, SampledSource]:
    """The rows of a shard that are in the samples, tokenised."""
    table = read_pairs(paths, [*LINEAGE, "reference", "paraphrase_score"])
    result = {}
    for source, rows in by_source(table).items():
        drawn = rows.filter(pa.array(sampling_keys(rows, seed) <= np.uint64(limits[source])))
        scores = np.full(drawn.num_rows, np.nan)
        if "paraphrase_score" in drawn.column_names:
            values, missing = numbers(drawn["paraphrase_score"])
            scores = np.where(missing, np.nan, values.astype(np.float64))
        lines = drawn["line"].to_numpy()
        texts = drawn["reference"].combine_chunks() if with_texts else None
        result[source] = SampledSource(tokenize_column(drawn["reference"]), lines, scores, texts)
    return result


def sample_references(
    shards: Sequence[Paths],
    rows: Sequence[int],
    seed: int,
    limits: Mapping[str, int],
    jobs: Jobs,
    with_texts: bool = False,
) -> dict[str, SampledSource]:
    arguments = [(paths, seed, dict(limits), with_texts) for paths in shards]
    display = {"description": "statistics: sample", "unit": "rows", "sizes": rows}
    drawn = jobs.results(draw_shard, arguments, files=files_of(shards), **display)
    parts = {source: [part[source] for part in drawn if source in part] for source in limits}
    return {
        source: SampledSource(
            join_columns([piece.tokens for piece in pieces]),
            np.concatenate([piece.lines for piece in pieces]),
            np.concatenate([piece.scores for piece in pieces]),
            pa.concat_arrays([piece.texts for piece in pieces]) if with_texts else None,
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
