"""Exact counts of word pairs over a corpus of any size, in bounded memory.

Counted are `#(u,v)` across the two sides of a pair and within each side, over binary sentences (a word counts
once a sentence; ParaNMT appendix A.1). Five passes, each a batch of independent jobs:

1. *encode*: each piece of the corpus is tokenised, its words' sentences are counted;
2. the vocabularies are added up, in groups and then all, and words ranked by frequency;
3. *rank*: each piece becomes sentences of distinct ascending ranks; the increments of each row are counted;
4. *count*: each block of rows reads all pieces and counts its rows (:mod:`paraforge.lexicon.pair_table`);
5. *cells* with enough pairs come out, block by block.

A row is counted by one job alone, so nothing has to be merged, and the counts do not depend on how many jobs
run at a time. What one pass has finished is kept in the work directory until the lexicon is written.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.errors import InputError
from paraforge.interrupts import check_interrupt
from paraforge.lexicon import dense_rows, pair_table, sparse_rows
from paraforge.lexicon.blocks import Block, plan_blocks
from paraforge.lexicon.encoding import (
    Encoding,
    Vocabulary,
    encode_piece,
    group_of,
    ids_file,
    merge_group,
    merge_vocabulary,
    rank_piece,
    read_ids,
    write_arrow,
)
from paraforge.lexicon.pair_sources import REASONS, PairSource
from paraforge.shards.scheduler import Jobs

logger = logging.getLogger(__name__)

CELLS_SCHEMA = pa.schema(
    [
        pa.field("u", pa.uint32(), metadata={"description": "rank of the rarer word"}),
        pa.field("v", pa.uint32(), metadata={"description": "rank of the more frequent word"}),
        pa.field(
            "pairs", pa.uint32(), metadata={"description": "pairs with u on one side and v on the other"}
        ),
        pa.field("cross", pa.uint32(), metadata={"description": "#(u,v) over both directions"}),
        pa.field("reference", pa.uint32(), metadata={"description": "references with both"}),
        pa.field("translation", pa.uint32(), metadata={"description": "translations with both"}),
    ]
)
# #(u,v) counts both directions of every pair with 32 bits.
MOST_PAIRS = 2**31 - 1


@dataclass(frozen=True)
class PairCounts:
    """Exact counts of a corpus.

    pairs: pairs counted; N of the cross-sentence PMI is twice this. dropped: pairs not counted, by reason.
    vocabulary: words and their sentence counts.
    cells: Arrow files (:data:`CELLS_SCHEMA`) with every two different words that at least the minimum of
        pairs have on opposite sides.
    """

    pairs: int
    dropped: dict[str, int]
    vocabulary: Vocabulary
    cells: tuple[Path, ...]


def count_pairs(
    source: PairSource,
    encoding: Encoding,
    minimum_pairs: int,
    directory: Path,
    memory: int,
    jobs: Jobs,
    allow_empty: bool = False,
) -> PairCounts:
    """Count a corpus.

    encoding: which of them, as what. minimum_pairs: least number of pairs of a cell.
    directory: where unfinished work is kept; on a disk that all workers see.
    memory: bytes that one job may take for counters. jobs: where to run.
    allow_empty: whether it is no error if no pair is left to be counted.

    Raises InputError: no pair is left to be counted, or there are too many.
    """
    directory.mkdir(parents=True, exist_ok=True)
    dropped = dict.fromkeys(REASONS, 0)
    pairs = 0
    sizes = [piece.rows for piece in source.pieces]
    arguments = [
        (piece, index, source.columns, encoding, directory) for index, piece in enumerate(source.pieces)
    ]
    for _, report in jobs.run(
        encode_piece, arguments, description="lexicon: words", unit="pairs", sizes=sizes
    ):
        pairs += report["counted"]
        for reason in REASONS:
            dropped[reason] += report[reason]
    if not pairs:
        if not allow_empty:
            raise InputError(_nothing_left(source.rows, dropped))
        logger.warning("%s: the lexicon is empty", _nothing_left(source.rows, dropped))
        return PairCounts(0, dropped, Vocabulary.of_nothing(), ())
    if pairs > MOST_PAIRS:
        raise InputError(f"{pairs:,} pairs; one lexicon can count {MOST_PAIRS:,}", remedy="Take a sample.")

    logger.info("%d pairs counted of %d", pairs, source.rows)
    groups = range(group_of(len(sizes) - 1) + 1)
    merge_arguments = [(directory, group, len(sizes)) for group in groups]
    for _ in jobs.run(merge_group, merge_arguments, description="lexicon: vocabulary"):
        pass
    vocabulary = merge_vocabulary(directory, len(sizes), minimum_pairs)
    increments = np.zeros(len(vocabulary), np.int64)
    for _, rows in jobs.run(
        rank_piece,
        [(directory, index, len(vocabulary)) for index in range(len(sizes))],
        description="lexicon: ranks",
        unit="pairs",
        sizes=sizes,
    ):
        increments += rows

    blocks = plan_blocks(increments, memory)
    logger.info("%d words, %d increments in %d blocks", len(vocabulary), int(increments.sum()), len(blocks))
    files = [ids_file(directory, index) for index in range(len(sizes))]
    cells = [directory / f"cells-{block.name}.arrow" for block in blocks]
    for _ in jobs.run(
        count_block,
        [
            (block, increments[block.first : block.last], files, len(vocabulary), minimum_pairs, path)
            for block, path in zip(blocks, cells, strict=True)
        ],
        description="lexicon: counts",
        unit="word pairs",
        sizes=[block.increments for block in blocks],
    ):
        pass
    return PairCounts(pairs, dropped, vocabulary, tuple(cells))


def _nothing_left(rows: int, dropped: dict[str, int]) -> str:
    if not rows:
        return "the corpus is empty: there is no pair to make a lexicon of"
    listed = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items() if count)
    return f"none of {rows:,} pairs is left to make a lexicon of: {listed}"


def count_block(
    block: Block,
    increments: npt.NDArray[np.int64],
    files: Sequence[Path],
    words: int,
    minimum_pairs: int,
    path: Path,
) -> int:
    """Count a block's rows over all pieces and write its cells to ``path``; gives the number of cells."""
    if path.is_file():
        return 0
    count = _count_dense if block.dense else _count_sparse
    rows, columns, counts = count(block, increments, files, words, minimum_pairs)
    table = pa.table(
        [
            rows,
            columns,
            counts[:, pair_table.CROSS] - counts[:, pair_table.BOTH],
            counts[:, pair_table.CROSS],
            counts[:, pair_table.REFERENCE],
            counts[:, pair_table.TRANSLATION],
        ],
        schema=CELLS_SCHEMA,
    )
    write_arrow(table, path)
    return len(rows)


def _count_dense(
    block: Block, increments: npt.NDArray[np.int64], files: Sequence[Path], words: int, minimum_pairs: int
) -> pair_table.Cells:
    cells = dense_rows.triangle(block.last) - dense_rows.triangle(block.first)
    counters = np.zeros(pair_table.COUNTERS * cells, np.uint32)
    stretches = (len(counters) >> dense_rows.STRETCH_BITS) + 1
    buffers = np.empty((stretches, dense_rows.BUFFER_ENTRIES), np.uint32)
    filled = np.zeros(stretches, np.int64)
    for file in files:
        check_interrupt()
        dense_rows.count_dense(*read_ids(file), block.first, block.last, counters, buffers, filled)
    dense_rows.flush_all(counters, buffers, filled)
    return dense_rows.cells_of_dense(counters, block.first, block.last, minimum_pairs)


def _count_sparse(
    block: Block, increments: npt.NDArray[np.int64], files: Sequence[Path], words: int, minimum_pairs: int
) -> pair_table.Cells:
    starts = np.concatenate([[0], np.cumsum(increments)[:-1]]).astype(np.int64)
    ends = starts.copy()
    entries = np.empty(int(increments.sum()), np.uint32)
    for file in files:
        check_interrupt()
        sparse_rows.list_sparse(*read_ids(file), block.first, block.last, ends, entries)
    scratch = np.zeros(pair_table.COUNTERS * words, np.uint32)
    return sparse_rows.cells_of_sparse(starts, ends, entries, scratch, block.first, minimum_pairs)
