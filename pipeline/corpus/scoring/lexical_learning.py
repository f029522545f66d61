"""Learns the lexical table of a corpus from a sample of its rows by expectation maximization, in both
directions.

A row with a wrong translation must not be evidence for itself. So a link needs two rows with both words, and
1 is subtracted from each expected count: the most that one row adds if it has each word once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.compiled import compiled
from paraforge.base.progress import progress
from paraforge.base.shards.libraries import installed
from paraforge.base.shards.lineage import Smallest, mix
from paraforge.base.shards.pool import in_order, in_threads, threads_for
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FATE_COLUMNS, alive_rows
from paraforge.base.shards.store import ShardView
from paraforge.base.shards.work import WorkDirectory, shard_key
from paraforge.base.text.ragged import IntArray, offsets_of
from paraforge.base.text.tokens import LIBRARIES, TokenColumn, tokenize_column
from paraforge.corpus.scoring.lexical_table import (
    CHANCE,
    NEARNESS,
    Floats,
    LexicalTable,
    Side,
    distance,
    foreign_units,
    hash_links,
    place_of,
    units_of,
)
from paraforge.versions import SCORE

STEP: Final = "score-translations"
SIDES: Final = ("source_text", "reference")
MOST_ROWS: Final = 300_000
"""Most rows to learn from; of a longer corpus, those with the smallest pseudo-random keys."""
MOST_CELLS: Final = 1 << 25
"""Most pairs of words in these rows, each four bytes of memory."""
MOST_CHARACTERS: Final = 400
"""Most characters of a side; a longer row shows little about which word translates which."""
MOST_UNITS: Final = 1 << 18
"""Most distinct units of a side: the most frequent ones that occur at least twice."""
ROUNDS: Final = 5
_PARTS: Final = 16  # of the pairs of units
_BLOCKS: Final = 4  # of the rows; their number decides the last digits
_LEAST: Final = 1e-3
"""A link is dropped if its probability is below this in both directions."""


def drawn_rows(tables: Iterable[pa.Table], most: int = MOST_ROWS) -> pa.Table:
    """Return the rows with both sides that have the smallest keys, in the order of keys.

    tables: all of a corpus, in order: ``source_text``, ``reference`` and perhaps ``rank`` (only rank 0
        counts), ``rejected``, ``failed``.
    most: rows.

    Returns ``key``, which depends only on the row's number, ``source_text`` and ``reference``.
    """
    drawn = Smallest(most)
    drawn.add(_usable(0, pa.table(dict.fromkeys(SIDES, pa.array([], pa.string()))), drawn.limit))
    first = 0
    for table in tables:
        drawn.add(_usable(first, table, drawn.limit))
        first += table.num_rows
    return drawn.rows().sort_by("key")


def _usable(first: int, table: pa.Table, limit: int) -> pa.Table:
    """Return the rows with both sides whose keys are below a limit, which in a long corpus are few."""
    keys = mix(np.arange(first, first + table.num_rows).astype(np.uint64))
    below = np.flatnonzero(keys <= np.uint64(limit))
    if len(below) < len(keys):
        table, keys = table.take(pa.array(below)), keys[below]
    usable = alive_rows(table)
    for name in SIDES:
        length = pc.utf8_length(table[name])
        usable = pc.and_(usable, pc.and_(pc.greater(length, 0), pc.less_equal(length, MOST_CHARACTERS)))
    if "translation_line" in table.column_names:  # in a pair of two translations, neither side is a reference
        usable = pc.and_(usable, pc.is_null(table["translation_line"]))
    if "rank" in table.column_names:
        usable = pc.and_(usable, pc.equal(pc.fill_null(table["rank"], 0), 0))
    return pa.table({"key": keys, **{name: table[name] for name in SIDES}}).filter(usable)


def learn(rows: pa.Table, threads: int = 1) -> LexicalTable:
    """Learn the table from the rows of :func:`drawn_rows`. The same rows in the same order give the same
    table on any machine and for any number of threads."""
    sides: tuple[Callable[[], TokenColumn], ...] = (
        lambda: foreign_units(rows["source_text"]),
        lambda: units_of(tokenize_column(rows["reference"])),
    )
    foreign, reference = in_threads(lambda units: units(), sides, threads)
    cells = np.cumsum(foreign.lengths * reference.lengths)
    last = int(np.searchsorted(cells, MOST_CELLS, side="right"))
    (foreign_side, first), (reference_side, second) = (
        _side(side.slice(0, last)) for side in (foreign, reference)
    )
    links = _met_twice(first, second, threads)
    places, blocks = hash_links(links), _blocks(first, second)
    for _ in in_threads(lambda block: _find_links(*block, places, links), blocks, threads):
        pass
    chances = [side.counts / max(1, side.total) for side in (foreign_side, reference_side)]
    # Both directions of a link are side by side, because they are needed at the same time.
    shares, likely = np.full((len(links), 2), _LEAST), np.ones(len(links), np.bool_)
    for _ in range(ROUNDS):
        # A link whose shares are 0 gets no more counts, so it is left out.
        numbers = np.append(np.where(likely, np.cumsum(likely) - 1, -1), -1).astype(np.int32)
        links, shares = links[likely], shares[likely]
        expect = partial(_count_expected, numbers=numbers, chances=chances, shares=shares)
        # The order of the sum is always the same.
        counts = np.asarray(sum(in_threads(expect, blocks, threads)))
        for side in (0, 1):
            shares[:, side] = _shares(counts[:, side], links[:, side])
        likely = shares.max(axis=1) > 0
    kept = shares.max(axis=1) >= _LEAST
    return LexicalTable(foreign_side, reference_side, links[kept], shares[kept].astype(np.float32))


def _shares(counts: Floats, units: npt.NDArray[np.int32]) -> Floats:
    """Return the probability of each link given its unit on one side: (its count - 1) / the unit's total."""
    totals = np.bincount(units, counts)
    return np.asarray(np.maximum(counts - 1, 0) / np.maximum(totals[units], 1))


def learn_corpus(translated: Path, resources: Resources) -> tuple[Path, str]:
    """Learn the table of a corpus, or find it in the work directory.

    translated: shard directory. resources: threads and the work directory.

    Returns the file of the table, empty if no row has a foreign side, and its SHA-256, which is part of the
    scores' key.

    Raises:
        WorkLockedError: another process is learning in this work directory.
    """
    view = ShardView(translated)
    work = WorkDirectory(STEP, resources.work)
    key = shard_key(
        {"step": STEP, "version": SCORE}, [record.sha256 for record in view.directories[0].records]
    )
    return work.find_or_make(
        key,
        lambda: learn(
            drawn_rows(_corpus_tables(view, resources)), threads_for(resources, view.total_rows)
        ).table(),
        installed(LIBRARIES),
    )


def _corpus_tables(view: ShardView, resources: Resources) -> Iterator[pa.Table]:
    """Yield the tables of a corpus that has foreign sides."""
    columns = [
        name for name in (*SIDES, *FATE_COLUMNS, "rank", "translation_line") if name in view.column_names
    ]
    shards = len(view) if {*SIDES} <= {*columns} else 0
    read = in_order(partial(view.read, columns=columns), shards, threads_for(resources, view.total_rows))
    with progress(total=view.total_rows, unit="rows", description=STEP) as bar:
        for table in read:
            yield table
            bar.update(table.num_rows)


def _side(tokens: TokenColumn) -> tuple[Side, TokenColumn]:
    """Return the known units of a side, and its tokens as their numbers, -1 for unknown units."""
    counts = np.bincount(tokens.ids, minlength=len(tokens.vocabulary))
    table = pa.table(
        {"unit": pa.array(tokens.vocabulary, pa.string()), "count": counts, "place": np.arange(len(counts))}
    )
    table = table.filter(pc.greater(table["count"], 1))
    table = table.sort_by([("count", "descending"), ("unit", "ascending")]).slice(0, MOST_UNITS)
    numbers = np.full(len(counts), -1, np.int32)
    numbers[table["place"].to_numpy()] = np.arange(table.num_rows)
    side = Side(table["unit"].combine_chunks(), table["count"].to_numpy().astype(np.int64), len(tokens.ids))
    return side, TokenColumn(numbers[tokens.ids], tokens.offsets, [])


def _met_twice(first: TokenColumn, second: TokenColumn, threads: int) -> npt.NDArray[np.int32]:
    """Return the pairs of known units that occur together in two rows or more, ascending, (pairs, 2)."""
    from scipy.sparse import csr_array  # imported here because it takes a fifth of a second

    counts = []
    for side in (first, second):
        known = side.ids >= 0
        ones = np.ones(known.sum(), np.int32)
        shape = len(side), side.ids.max(initial=0) + 1
        rows = csr_array((ones, side.ids[known], offsets_of(known)[side.offsets]), shape)
        rows.sum_duplicates()
        rows.data[:] = 1  # a row counts once, however often it has the word
        counts.append(rows)
    transposed = counts[0].T.tocsr()

    def met(part: int) -> npt.NDArray[np.int32]:
        times = (transposed[part::_PARTS] @ counts[1]).tocoo()
        often = times.data > 1
        return np.stack([times.row[often] * _PARTS + part, times.col[often]], axis=1).astype(np.int32)

    # All pairs at once would take twice the memory of everything else.
    pairs = np.concatenate(list(in_order(met, _PARTS, threads)))
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


class Block(NamedTuple):
    """A block of rows: the unit numbers of both sides with the offsets of each row, and the cells' links.

    A cell is a pair of units of one row. Cells are ordered by row, second unit, first unit; -1 is no link.
    """

    first: npt.NDArray[np.int32]
    first_offsets: IntArray
    second: npt.NDArray[np.int32]
    second_offsets: IntArray
    links: npt.NDArray[np.int32]


def _blocks(first: TokenColumn, second: TokenColumn) -> list[Block]:
    """Return the rows in blocks of about as many cells, without links."""
    cells = offsets_of(first.lengths * second.lengths)
    links = np.full(cells[-1], -1, np.int32)
    bounds = np.searchsorted(cells, np.linspace(0, cells[-1], _BLOCKS + 1))
    return [
        Block(
            first.ids,
            first.offsets[begin : end + 1],
            second.ids,
            second.offsets[begin : end + 1],
            links[cells[begin] : cells[end]],
        )
        for begin, end in pairwise(bounds.tolist())
    ]


@compiled
def _find_links(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any, cells: Any, places: Any, links: Any
) -> None:
    """Find the index of each cell's link."""
    cell = 0
    for row in range(len(first_offsets) - 1):
        for j in range(second_offsets[row], second_offsets[row + 1]):
            for i in range(first_offsets[row], first_offsets[row + 1]):
                if first[i] >= 0 and second[j] >= 0:
                    cells[cell] = place_of(places, links, first[i], second[j])
                cell += 1


def _count_expected(
    block: Block, numbers: npt.NDArray[np.int32], chances: Sequence[Floats], shares: Floats
) -> Floats:
    """Return the expected number of each link in these rows, in both directions, (links, 2)."""
    counts = np.zeros_like(shares)
    cells = np.diff(block.first_offsets) * np.diff(block.second_offsets)
    most = int(cells.max(initial=0))
    _expect(*block, most, numbers, chances[0], chances[1], shares, counts, NEARNESS)
    return counts


@compiled
def _expect(
    first: Any, first_offsets: Any, second: Any, second_offsets: Any, cells: Any, most: int,
    numbers: Any, first_chances: Any, second_chances: Any, shares: Any, counts: Any, nearness: Any,
) -> None:  # fmt: skip
    """Add the expected number of each link in both directions to the counts, (links, 2).

    cells: the link of each cell by its last number, which is replaced by its new one, ``numbers[last]``.
    most: the largest number of cells in a row.
    """
    start = 0
    # The linked cells of a row: their links, words, and weighted shares.
    linked, words, weighted = np.empty(most, np.int32), np.empty((most, 2), np.int32), np.empty((most, 2))
    for row in range(len(first_offsets) - 1):
        begin, other = first_offsets[row], second_offsets[row]
        rows, columns = first_offsets[row + 1] - begin, second_offsets[row + 1] - other
        weights, explained = np.zeros(rows), np.zeros(rows)
        column_weights, column_explained = np.zeros(columns), np.zeros(columns)
        size = 0
        for j in range(columns):
            for i in range(rows):
                weight = nearness[distance(i, 1 / rows, j, 1 / columns)]
                weights[i] += weight
                column_weights[j] += weight
                place = numbers[cells[start + j * rows + i]]
                cells[start + j * rows + i] = place
                if place >= 0:
                    for side in (0, 1):
                        weighted[size, side] = weight * shares[place, side]
                    explained[i] += weighted[size, 1]
                    column_explained[j] += weighted[size, 0]
                    linked[size], words[size, 0], words[size, 1] = place, i, j
                    size += 1
        for i in range(rows):
            if first[begin + i] >= 0:
                explained[i] += CHANCE / (1 - CHANCE) * weights[i] * first_chances[first[begin + i]]
        for j in range(columns):
            if second[other + j] >= 0:
                chance = second_chances[second[other + j]]
                column_explained[j] += CHANCE / (1 - CHANCE) * column_weights[j] * chance
        for cell in range(size):
            counts[linked[cell], 0] += weighted[cell, 0] / column_explained[words[cell, 1]]
            counts[linked[cell], 1] += weighted[cell, 1] / explained[words[cell, 0]]
        start += rows * columns
