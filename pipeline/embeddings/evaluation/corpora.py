"""Reads the pairs of a corpus that can be used for training: the training split of a published corpus, or
shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.text.pair_blocks import PairBlock, blocks_of_sources, read_corpus_pairs
from paraforge.corpus.publication.datasets import is_published, open_published, published_tables


def corpus_blocks(directory: Path) -> Iterator[PairBlock]:
    """Yield a corpus' training pairs, block by block, without held-out splits and rejected or failed pairs.
    Raises InputError if it is missing or damaged."""
    if not is_published(directory):
        yield from read_corpus_pairs(directory)
        return
    dataset = open_published(directory).training
    columns = [name for name in (*TEXT_COLUMNS, "source") if name in dataset.schema.names]
    for table in published_tables(dataset, columns):
        yield from blocks_of_sources(table, TEXT_COLUMNS)
