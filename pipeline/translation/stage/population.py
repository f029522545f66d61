"""Counts the sentences to translate, and draws a sample of them: those with the smallest keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.progress import progress
from paraforge.base.shards.lineage import Smallest, text_keys
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.memory.distinct import waiting_columns, waiting_rows

# Sentences that are kept for measuring how long translation takes.
KEPT = 50_000


@dataclass(frozen=True)
class Population:
    """Distinct sentences that wait for a translation.

    rows: rows of the corpus. sentences: distinct sentences in rows that wait for a translation.
    text_bytes: UTF-8 bytes of the distinct sentences.
    sample: some of them in random order.
    """

    rows: int
    sentences: int
    text_bytes: int
    sample: list[str]


def survey(corpus: ShardDirectory, kept: int = KEPT, maximum: int | None = None) -> Population:
    """Count the distinct sentences of a corpus and keep a sample of them, in one pass.

    Memory does not grow with the corpus. The same sentences give the same sample, however they are divided
    into shards.

    corpus: shards with the columns that ingest writes. kept: sentences to keep.
    maximum: most sentences to translate. If the corpus has more, ``text_bytes`` is an estimate.
    """
    kept = min(kept, maximum or kept)
    smallest = Smallest(kept)
    sentences = text_bytes = start = 0
    columns = ["source_text", *waiting_columns(corpus.schema)]
    with progress(total=corpus.total_rows, unit="rows", description="sentences") as bar:
        for table in corpus.tables(columns):
            begins = pc.and_(waiting_rows(table), _begins(table, start))
            own = table.filter(begins).select(["source_text"])
            sentences += own.num_rows
            text_bytes += pc.sum(pc.binary_length(own["source_text"])).as_py() or 0
            smallest.add(own.append_column("key", pa.array(text_keys(own["source_text"])[:, 0])))
            start += table.num_rows
            bar.update(table.num_rows)
    sample = smallest.rows().sort_by("key").slice(0, kept)["source_text"].to_pylist()
    left = min(sentences, maximum or sentences)
    return Population(corpus.total_rows, left, round(text_bytes * left / max(1, sentences)), sample)


def _begins(table: pa.Table, start: int) -> pa.Array:
    """Return which rows of a shard are the first of their sentence in the corpus."""
    rows = pa.array(np.arange(start, start + table.num_rows))
    first = pc.fill_null(table.column("first_row").combine_chunks(), -1)
    return pc.or_(pc.less(first, 0), pc.equal(first, rows))


def blocks(population: Population, size: int) -> Iterator[list[str]]:
    """Yield samples of ``size`` sentences without end. A sentence only repeats once all have been used."""
    sentences = cycle(population.sample)
    while block := list(islice(sentences, size)):
        yield block
