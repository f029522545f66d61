"""Counts word pairs exactly over a corpus of any size, in bounded memory.

It counts `#(u,v)` across the two sides of a pair and within each side; a word counts once per sentence
(ParaNMT appendix A.1). There are five passes, each a batch of independent jobs:

1. *encode*: each piece of the corpus is tokenized, and the sentences of its words are counted;
2. the vocabularies are added up, and words ranked by frequency (DuckDB);
3. *rank*: each piece becomes sentences of distinct ascending ranks; the increments of each row are counted;
4. *count*: each block of rows reads all pieces and counts its rows
   (:mod:`paraforge.products.lexicon.pair_table`);
5. *cells* with enough pairs are written, block by block.

Only one job counts a row, so nothing needs to be merged, and the counts do not depend on how many jobs run in
parallel. Finished passes stay in the work directory until the lexicon is written.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.scheduler import Jobs
from paraforge.corpus.publication.held_out import HeldOut
from paraforge.products.lexicon import pair_table
from paraforge.products.lexicon.encoding import (
    CountedWords,
    encode_piece,
    file_of,
    merge_vocabulary,
    rank_piece,
    read_ids,
    write_arrow,
)
from paraforge.products.lexicon.pair_sources import PairSource, reasons
from paraforge.products.lexicon.pair_table import COUNTERS
from paraforge.products.lexicon.parameters import LexiconParameters

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

    pairs: counted pairs; N of the cross-sentence PMI is twice this. dropped: pairs not counted, by reason.
    vocabulary: words and their sentence counts.
    cells: Arrow files (:data:`CELLS_SCHEMA`) with all pairs of different words that are on opposite sides of
        enough pairs.
    """

    pairs: int
    dropped: dict[str, int]
    vocabulary: CountedWords
    cells: tuple[Path, ...]


def count_pairs(
    source: PairSource,
    parameters: LexiconParameters,
    directory: Path,
    memory: int,
    jobs: Jobs,
    allow_empty: bool = False,
    held_out: HeldOut | None = None,
) -> PairCounts:
    """Count a corpus.

    parameters: which pairs to count, the class of words, and the least number of pairs in a cell.
    directory: for unfinished work, on a disk that all workers see. memory: bytes for the counters of one job.
    jobs: where to run. allow_empty: accept a corpus in which no pair is left to count.
    held_out: sentences whose pairs are not counted.

    Raises InputError: no pair is left to count, or there are too many.
    """
    directory.mkdir(parents=True, exist_ok=True)
    dropped = dict.fromkeys(reasons(held_out), 0)
    pairs, minimum_pairs = 0, parameters.minimum_pairs
    sizes = [piece.rows for piece in source.pieces]
    arguments = [
        (piece, index, source.columns, parameters, directory, held_out)
        for index, piece in enumerate(source.pieces)
    ]
    for _, report in jobs.run(
        encode_piece, arguments, description="lexicon: words", unit="pairs", sizes=sizes
    ):
        pairs += report["counted"]
        for reason in dropped:
            dropped[reason] += report[reason]
    if not pairs:
        if not allow_empty:
            raise InputError(_nothing_left(source.rows, dropped))
        logger.warning("%s: the lexicon is empty", _nothing_left(source.rows, dropped))
    if pairs > MOST_PAIRS:
        raise InputError(f"{pairs:,} pairs; one lexicon can count {MOST_PAIRS:,}", remedy="Take a sample.")

    logger.info("%d pairs counted of %d", pairs, source.rows)
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
    files = [file_of(directory, "ids", index) for index in range(len(sizes))]
    cells = [directory / f"cells-{block.name}.arrow" for block in blocks]
    jobs.results(
        count_block,
        [
            (block, increments[block.first : block.last], files, len(vocabulary), minimum_pairs, path)
            for block, path in zip(blocks, cells, strict=True)
        ],
        description="lexicon: counts",
        unit="word pairs",
        sizes=[block.increments for block in blocks],
    )
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
    """Count a block's rows over all pieces and write its cells to ``path``. Returns the number of cells."""
    if path.is_file():
        return 0
    if block.dense:
        cells = pair_table.triangle(block.last) - pair_table.triangle(block.first)
        counters = np.zeros(COUNTERS * cells, np.uint32)
        for file in files:
            of_piece = np.zeros(words, np.int64)
            pair_table.count_row_increments(read_ids(file), of_piece)
            listed = _list_rows(block, of_piece[block.first : block.last], [file])
            pair_table.add_listed(*listed, block.first, counters)
        found = pair_table.cells_of_counters(counters, block.first, block.last, minimum_pairs)
    else:
        scratch = np.zeros(COUNTERS * words, np.uint32)
        listed = _list_rows(block, increments, files)
        found = pair_table.cells_of_listed(*listed, scratch, block.first, minimum_pairs)
    rows, columns, counts = found
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


def _list_rows(
    block: Block, increments: npt.NDArray[np.int64], files: Sequence[Path]
) -> tuple[pair_table.Counts, pair_table.Counts, pair_table.Words]:
    """Return the bounds of each row's increments, and all increments."""
    starts = np.concatenate([[0], np.cumsum(increments)[:-1]]).astype(np.int64)
    ends = starts.copy()
    entries = np.empty(int(increments.sum()), np.uint32)
    for file in files:
        check_interrupt()
        pair_table.list_rows(read_ids(file), block.first, block.last, ends, entries)
    return starts, ends, entries


COUNTER_BYTES = 4
# Enough blocks that a cluster shares the work evenly, and so few that reading all pairs for each costs
# little.
SHARE_OF_WORK = 12


@dataclass(frozen=True)
class Block:
    """Rows ``first`` to ``last - 1``; ``increments`` is their exact number of increments."""

    first: int
    last: int
    dense: bool
    increments: int

    @property
    def name(self) -> str:
        """A name that differs between blocks of different plans."""
        return f"{self.first:08d}-{self.last:08d}-{'dense' if self.dense else 'sparse'}"


def plan_blocks(row_increments: npt.NDArray[np.int64], memory: int) -> list[Block]:
    """Cut the rows into blocks.

    Frequent words get dense rows, rare ones sparse rows, with the border that minimizes memory.

    row_increments: increments of each row, words by frequency, see
        :func:`~paraforge.products.lexicon.pair_table.count_row_increments`.
    memory: most bytes for the counters or entries of one block.
    """
    words = len(row_increments)
    columns = np.arange(words, dtype=np.int64)
    dense_bytes = COUNTERS * COUNTER_BYTES * columns
    sparse_bytes = COUNTER_BYTES * row_increments
    # total bytes if rows before the border are dense and the others sparse
    total = np.zeros(words + 1, np.int64)
    total[1:] = np.cumsum(dense_bytes - sparse_bytes)
    border = int(np.argmin(total))
    share = max(1, int(row_increments.sum()) // SHARE_OF_WORK)
    blocks: list[Block] = []
    for dense, first, last, cost in ((True, 0, border, dense_bytes), (False, border, words, sparse_bytes)):
        for start, end in _cut(cost[first:last], row_increments[first:last], memory, share):
            increments = int(row_increments[first + start : first + end].sum())
            if increments:
                blocks.append(Block(first + start, first + end, dense, increments))
    return blocks


def _cut(
    cost: npt.NDArray[np.int64], increments: npt.NDArray[np.int64], memory: int, share: int
) -> Sequence[tuple[int, int]]:
    """Return ranges of rows with at most ``memory`` bytes and about ``share`` increments."""
    bytes_before = np.concatenate([[0], np.cumsum(cost)])
    increments_before = np.concatenate([[0], np.cumsum(increments)])
    ranges = []
    start = 0
    while start < len(cost):
        by_memory = int(np.searchsorted(bytes_before, bytes_before[start] + memory, side="right")) - 1
        by_work = int(np.searchsorted(increments_before, increments_before[start] + share, side="left"))
        end = min(max(start + 1, min(by_memory, by_work)), len(cost))
        ranges.append((start, end))
        start = end
    return ranges
