"""Counts word pairs exactly over a corpus of any size, in bounded memory.

It counts `#(u,v)` across the two sides of a pair and within each side; a word counts once per sentence
(ParaNMT appendix A.1). There are four passes:

1. *encode*: each piece of the corpus is tokenized, and the sentences of its words are counted;
2. the vocabularies are added up, and words ranked by frequency (DuckDB);
3. *rank*: each piece becomes sentences of distinct ascending ranks; the increments of each row are counted;
4. *count*: each block of rows reads all pieces, counts its rows with compiled loops, and
   writes the cells with enough pairs.

Only one job counts a row, so nothing needs to be merged, and the counts do not depend on how many jobs run in
parallel. Finished passes stay in the work directory until the lexicon is written.

Two words are counted in the row of the rarer one, `u`, at the column of the more frequent one, `v < u`, with
four counts per cell:

* CROSS, `#(u,v)`: u in one sentence of a pair and v in the other; 2 if a pair has both directions;
* REFERENCE and TRANSLATION: references (translations) with both words;
* BOTH: pairs with both words on both sides, the pairs that CROSS counts twice.

A row's increments are first listed, then counted, so that the counters stay in the processor's cache.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from paraforge.base.compiled import compiled
from paraforge.base.errors import InputError
from paraforge.base.shards.scheduler import Jobs
from paraforge.base.text.ragged import offsets_of
from paraforge.corpus.publication.datasets import HeldOut
from paraforge.products.lexicon.encoding import (
    Counts,
    PairTable,
    Sentences,
    Words,
    encode_piece,
    file_of,
    merge_vocabulary,
    rank_piece,
    read_arrow,
    read_ids,
    write_arrow,
)
from paraforge.products.lexicon.pair_sources import PairSource, reasons
from paraforge.products.lexicon.parameters import LexiconParameters

logger = logging.getLogger(__name__)

CROSS: Final = 0
REFERENCE: Final = 1
TRANSLATION: Final = 2
BOTH: Final = 3
COUNTERS: Final = 4
Cells = tuple[Counts, Counts, Words]
"""Rows, columns, and counts (cells x COUNTERS)."""
# #(u,v) counts both directions of every pair with 32 bits.
MOST_PAIRS = 2**31 - 1
COUNTER_BYTES = 4
# Enough blocks that a cluster shares the work evenly, and so few that reading all pairs for each costs
# little.
SHARE_OF_WORK = 12


@dataclass(frozen=True)
class PairCounts:
    """Exact counts of a corpus.

    pairs: counted pairs; N of the cross-sentence PMI is twice this. dropped: pairs not counted, by reason.
    vocabulary: words by rank, see :func:`~paraforge.products.lexicon.encoding.merge_vocabulary`.
    cells: Arrow files (see :func:`count_block`) with all pairs of different words that are on opposite sides
        of enough pairs.
    """

    pairs: int
    dropped: dict[str, int]
    vocabulary: pa.Table
    cells: tuple[Path, ...]


@dataclass(frozen=True)
class Block:
    """Rows ``first`` to ``last - 1``; ``increments`` is their exact number of increments. A dense block has a
    counter for each cell, and its increments are listed piece by piece, instead of all at once."""

    first: int
    last: int
    dense: bool
    increments: int

    @property
    def name(self) -> str:
        """A name that differs between blocks of different plans."""
        return f"{self.first:08d}-{self.last:08d}-{'dense' if self.dense else 'sparse'}"


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

    Raises InputError if no pair is left to count, or there are too many.
    """
    directory.mkdir(parents=True, exist_ok=True)
    dropped = dict.fromkeys(reasons(held_out), 0)
    counted, minimum_pairs = [0] * len(source.pieces), parameters.minimum_pairs
    sizes = [piece.rows for piece in source.pieces]
    arguments = [
        (piece, index, source.columns, parameters, directory, held_out)
        for index, piece in enumerate(source.pieces)
    ]
    for index, report in jobs.run(
        encode_piece, arguments, description="lexicon: words", unit="pairs", sizes=sizes
    ):
        counted[index] = report["counted"]
        for reason in dropped:
            dropped[reason] += report[reason]
    pairs = sum(counted)
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
        [(directory, index, counted[index]) for index in range(len(sizes))],
        description="lexicon: ranks",
        unit="pairs",
        sizes=sizes,
    ):
        increments += rows

    blocks = plan_blocks(increments, memory)
    logger.info("%d words, %d increments in %d blocks", len(vocabulary), int(increments.sum()), len(blocks))
    cells = [directory / f"cells-{block.name}.arrow" for block in blocks]
    jobs.results(
        count_block,
        [
            (block, directory, len(sizes), len(vocabulary), minimum_pairs, path)
            for block, path in zip(blocks, cells, strict=True)
        ],
        description="lexicon: counts",
        unit="word pairs",
        sizes=[block.increments for block in blocks],
    )
    return PairCounts(pairs, dropped, vocabulary, tuple(cells))


def _nothing_left(rows: int, dropped: dict[str, int]) -> str:
    if not rows:
        return "the corpus is empty, so there is no lexicon"
    listed = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items() if count)
    return f"none of {rows:,} pairs can be used for a lexicon: {listed}"


def count_block(
    block: Block, directory: Path, pieces: int, words: int, minimum_pairs: int, path: Path
) -> None:
    """Count a block's rows over all pieces and write its cells to ``path``: the ranks ``u`` and ``v`` of the
    rarer and the more frequent word, and four counts. A finished file is kept."""
    if path.is_file():
        return
    scratch = np.zeros(COUNTERS * words, np.uint32)
    if block.dense:
        before = np.arange(block.first, block.last + 1, dtype=np.int64)
        before = before * (before - 1) // 2  # cells of earlier rows: row u has u cells
        before -= before[0]
        total = np.zeros((before[-1], COUNTERS), np.uint32)
        for piece in range(pieces):
            rows, columns, counts = _count_pieces(block, directory, [piece], scratch, 0)
            total[before[rows - block.first] + columns] += counts
        chosen = np.flatnonzero(total[:, CROSS].astype(np.int64) - total[:, BOTH] >= minimum_pairs)
        rows = np.searchsorted(before, chosen, side="right") - 1
        columns, counts, rows = chosen - before[rows], total[chosen], rows + block.first
    else:
        rows, columns, counts = _count_pieces(block, directory, range(pieces), scratch, minimum_pairs)
    cells = {
        "u": rows,
        "v": columns,
        "pairs": counts[:, CROSS] - counts[:, BOTH],
        "cross_count": counts[:, CROSS],
        "reference_count": counts[:, REFERENCE],
        "translation_count": counts[:, TRANSLATION],
    }
    write_arrow(pa.table({name: values.astype(np.int64) for name, values in cells.items()}), path)


def _count_pieces(
    block: Block, directory: Path, pieces: Iterable[int], scratch: Words, minimum: int
) -> Cells:
    """Count a block's rows over some pieces. Returns the cells with at least ``minimum`` pairs."""
    increments = np.zeros(block.last - block.first, np.int64)
    for piece in pieces:
        rows = read_arrow(file_of(directory, "increments", piece))["rows"]
        increments += rows[block.first : block.last].to_numpy()
    ends = np.cumsum(increments)
    starts, ends = ends - increments, ends - increments
    entries = np.empty(int(increments.sum()), np.uint32)
    for piece in pieces:
        _list_rows(read_ids(file_of(directory, "ids", piece)), block.first, block.last, ends, entries)
    return _count_listed(starts, ends, entries, scratch, block.first, minimum)


def plan_blocks(row_increments: Counts, memory: int) -> list[Block]:
    """Cut the rows into blocks.

    Frequent words get dense rows, rare ones sparse rows, with the border that minimizes memory.

    row_increments: increments of each row, words by frequency, see
        :func:`~paraforge.products.lexicon.encoding.count_increments`.
    memory: most bytes for the counters or entries of one block.
    """
    dense_bytes = COUNTERS * COUNTER_BYTES * np.arange(len(row_increments), dtype=np.int64)
    sparse_bytes = COUNTER_BYTES * row_increments
    # total bytes if rows before the border are dense and the others sparse
    border = int(np.argmin(offsets_of(dense_bytes - sparse_bytes)))
    work = offsets_of(row_increments)
    share = max(1, int(work[-1]) // SHARE_OF_WORK)
    blocks: list[Block] = []
    spans = ((True, 0, border, dense_bytes), (False, border, len(row_increments), sparse_bytes))
    for dense, first, last, cost in spans:
        bytes_before = offsets_of(cost)
        while first < last:
            by_memory = int(np.searchsorted(bytes_before, bytes_before[first] + memory, side="right")) - 1
            by_work = int(np.searchsorted(work, work[first] + share, side="left"))
            end = min(max(first + 1, min(by_memory, by_work)), last)
            if work[end] > work[first]:
                blocks.append(Block(first, end, dense, int(work[end] - work[first])))
            first = end
    return blocks


@compiled
def _sentence(sentences: Sentences, number: int) -> Words:
    """Return the words of a sentence."""
    offsets, words = sentences
    return words[offsets[number] : offsets[number + 1]]


@compiled
def _list_sentence(
    own: Words, other: Words, kind: int, first: int, last: int, ends: Counts, entries: Words
) -> None:
    """List increments for the rows of one sentence's words: the other sentence's words as columns of kind
    CROSS, then its own words as columns of `kind`. The increments are appended at `ends[row - first]`, which
    advances."""
    for position in range(len(own) - 1, -1, -1):
        row = int(own[position])
        if row < first:
            break
        if row >= last:
            continue
        end = ends[row - first]
        column = 0
        while column < len(other) and other[column] < row:
            entries[end] = np.uint32(COUNTERS) * other[column] + np.uint32(CROSS)
            end += 1
            column += 1
        for column in range(position):
            entries[end] = np.uint32(COUNTERS) * own[column] + np.uint32(kind)
            end += 1
        ends[row - first] = end


@compiled
def _list_rows(table: PairTable, first: int, last: int, ends: Counts, entries: Words) -> None:
    """List the increments of rows first to last - 1; those of row u are in `entries` up to `ends[u -
    first]`."""
    references, translations, shared = table
    for pair in range(len(references[0]) - 1):
        reference, translation = _sentence(references, pair), _sentence(translations, pair)
        both = _sentence(shared, pair)
        _list_sentence(reference, translation, REFERENCE, first, last, ends, entries)
        _list_sentence(translation, reference, TRANSLATION, first, last, ends, entries)
        _list_sentence(both, both[:0], BOTH, first, last, ends, entries)


@compiled
def _count_listed(
    starts: Counts, ends: Counts, entries: Words, scratch: Words, first: int, minimum: int
) -> Cells:
    """Count the listed increments row by row. Returns the cells with at least `minimum` pairs.

    scratch: COUNTERS zeros per word of the vocabulary; zeros again afterwards.
    """
    # A cell with `minimum` pairs has as many entries. Memory that is not written to is not used.
    bound = len(entries) // max(minimum, 1)
    rows = np.empty(bound, np.int64)
    columns = np.empty(bound, np.int64)
    counts = np.empty((bound, COUNTERS), np.uint32)
    count = 0
    for row in range(len(starts)):
        for entry in range(starts[row], ends[row]):
            scratch[entries[entry]] += np.uint32(1)
        for entry in range(starts[row], ends[row]):
            base = np.int64(entries[entry]) & ~np.int64(COUNTERS - 1)
            listed = scratch[base + CROSS] + scratch[base + REFERENCE] + scratch[base + TRANSLATION]
            if listed and np.int64(scratch[base + CROSS]) - scratch[base + BOTH] >= minimum:
                rows[count] = first + row
                columns[count] = base // COUNTERS
                counts[count] = scratch[base : base + COUNTERS]
                count += 1
            scratch[base : base + COUNTERS] = 0
    return rows[:count].copy(), columns[:count].copy(), counts[:count].copy()
