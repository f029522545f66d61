"""The background corpus for inverse document frequencies: a file, or references of the corpus itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from paraforge.shards.lineage import LINEAGE, sampling_keys
from paraforge.shards.scheduler import Jobs
from paraforge.statistics.pairs import Paths, read_pairs
from paraforge.statistics.parameters import BackgroundParameters, located
from paraforge.text.idf import (
    Background,
    background_of_frequencies,
    background_of_sentences,
    count_documents,
)
from paraforge.text.tokens import tokenize_column

# Sampling for the background must not follow the sampling for Table 1.
BACKGROUND_SEED = 0x1DF


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
    for _, (sentences, found) in run(count_shard_background, arguments):
        documents += sentences
        for word, count in found.items():
            counts[word] = counts.get(word, 0) + count
    return Background("references", documents, counts)
