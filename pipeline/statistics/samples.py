"""A sample of each source's references, and what ParaNMT's Table 1 says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.selection.filters import numbers
from paraforge.selection.sampling import LINEAGE
from paraforge.shards.scheduler import Jobs
from paraforge.statistics.counts import Moments, by_source, rounded
from paraforge.statistics.pairs import Paths, keys_of, read_pairs
from paraforge.statistics.parses import Row, parse_with_stanza
from paraforge.text.idf import Background, entropy, sentence_means
from paraforge.text.tokens import TokenColumn, tokenize_column


@dataclass
class SampledSource:
    """References of one source, or of a shard's part of it, drawn for Table 1.

    Attributes:
        tokens: of each reference, over a vocabulary of its own.
        lines: line of each in its source.
        scores: paraphrase score of each, NaN where it has none.
    """

    tokens: TokenColumn
    lines: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


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


def parse_rest(source: str, sample: SampledSource, parses: dict[Row, str]) -> None:
    """Parse what no file has a parse of."""
    left = [row for row, line in enumerate(sample.lines.tolist()) if (source, line) not in parses]
    left = [row for row in left if sample.tokens.offsets[row + 1] > sample.tokens.offsets[row]]
    found = parse_with_stanza(sample.tokens.row(row) for row in left)
    parses.update({(source, int(sample.lines[row])): tree for row, tree in zip(left, found, strict=True)})


def draw_shard(paths: Paths, seed: int, limits: Mapping[str, int]) -> dict[str, SampledSource]:
    """The rows of a shard that are in the samples, tokenised."""
    table = read_pairs(paths, [*LINEAGE, "reference", "paraphrase_score"])
    result = {}
    for source, rows in by_source(table).items():
        drawn = rows.filter(pa.array(keys_of(rows, seed) <= np.uint64(limits[source])))
        scores = np.full(drawn.num_rows, np.nan)
        if "paraphrase_score" in drawn.column_names:
            values, missing = numbers(drawn["paraphrase_score"])
            scores = np.where(missing, np.nan, values.astype(np.float64))
        lines = drawn["line"].to_numpy()
        result[source] = SampledSource(tokenize_column(drawn["reference"]), lines, scores)
    return result


def sample_references(
    shards: Sequence[Paths], rows: Sequence[int], seed: int, limits: Mapping[str, int], jobs: Jobs
) -> dict[str, SampledSource]:
    parts: dict[str, dict[int, SampledSource]] = {source: {} for source in limits}
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
