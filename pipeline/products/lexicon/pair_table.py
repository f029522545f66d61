"""Compiled loops over pairs of sentences encoded as word numbers.

A *pair table* is four arrays: offsets and word ids of the references, offsets and word ids of the
translations. The ids of a sentence are distinct and ascending, and ids are ranks by frequency: 0 is the most
frequent word. Two words are counted in the row of the rarer one, `u`, at the column of the more frequent one,
`v < u`, with four counts per cell:

* CROSS, `#(u,v)`: u in one sentence of a pair and v in the other; 2 if a pair has both directions;
* REFERENCE and TRANSLATION: references (translations) with both words;
* BOTH: pairs with both words on both sides, the pairs that CROSS counts twice.

A row's increments are first listed, then counted, so that the counters stay in the processor's cache.
Frequent words have a counter for each column, to which each piece's list is added; for rare words, one list
over all pieces takes less memory.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled

CROSS: Final = 0
REFERENCE: Final = 1
TRANSLATION: Final = 2
BOTH: Final = 3
COUNTERS: Final = 4

DROPPED: Final = 0xFFFFFFFF
"""The rank of a word that is left out of the counts."""

Offsets = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
PairTable = tuple[Offsets, Words, Offsets, Words]
Cells = tuple[Words, Words, Words]
"""Rows, columns, and counts (cells x COUNTERS)."""


@compiled
def distinct_ranks(ids: npt.NDArray[np.int32], offsets: Counts, ranks: Words) -> tuple[Offsets, Words]:
    """Return each sentence's distinct words as ascending ranks, without words of rank DROPPED."""
    result = np.empty(len(ids), np.uint32)
    starts = np.zeros(len(offsets), np.int32)
    end = 0
    for sentence in range(len(offsets) - 1):
        start = end
        for position in range(offsets[sentence], offsets[sentence + 1]):
            rank = ranks[ids[position]]
            if rank == DROPPED:
                continue
            # Insertion sort: sentences are short, and their frequent words tend to come first anyway.
            place = end
            while place > start and result[place - 1] > rank:
                place -= 1
            if place > start and result[place - 1] == rank:
                continue
            for moved in range(end, place, -1):
                result[moved] = result[moved - 1]
            result[place] = rank
            end += 1
        starts[sentence + 1] = end
    return starts, result[:end].copy()


@compiled
def count_row_increments(table: PairTable, rows: Counts) -> None:
    """Add the number of the pair table's increments in row u to `rows[u]`."""
    for pair in range(len(table[0]) - 1):
        reference, translation = sentences(table, pair)
        before_reference = 0
        before_translation = 0
        shared = 0
        # Merge the two sides, so that at each word the number of smaller ones on each side is known.
        while before_reference < len(reference) or before_translation < len(translation):
            in_reference = before_reference < len(reference) and (
                before_translation == len(translation)
                or reference[before_reference] <= translation[before_translation]
            )
            in_translation = before_translation < len(translation) and (
                before_reference == len(reference)
                or translation[before_translation] <= reference[before_reference]
            )
            # for a side's word: columns in the translation and in the reference
            columns = before_reference + before_translation
            if in_reference and in_translation:
                rows[reference[before_reference]] += shared
                shared += 1
            if in_reference:
                rows[reference[before_reference]] += columns
                before_reference += 1
            if in_translation:
                rows[translation[before_translation]] += columns
                before_translation += 1


@compiled
def sentences(table: PairTable, pair: int) -> tuple[Words, Words]:
    """Return the words of a pair's reference and translation."""
    reference_offsets, references, translation_offsets, translations = table
    return (
        references[reference_offsets[pair] : reference_offsets[pair + 1]],
        translations[translation_offsets[pair] : translation_offsets[pair + 1]],
    )


@compiled
def shared_words(reference: Words, translation: Words, result: Words) -> int:
    """Write the words of both sentences to `result`, ascending. Returns their number."""
    found, here, there = 0, 0, 0
    while here < len(reference) and there < len(translation):
        if reference[here] < translation[there]:
            here += 1
        elif reference[here] > translation[there]:
            there += 1
        else:
            result[found] = reference[here]
            found += 1
            here += 1
            there += 1
    return found


@compiled
def longest(offsets: Offsets) -> int:
    """Return the number of words in the longest sentence."""
    length = 0
    for sentence in range(len(offsets) - 1):
        length = max(length, offsets[sentence + 1] - offsets[sentence])
    return length


@compiled
def triangle(row: int) -> int:
    """Return the number of cells in the rows before `row`: row u has u cells."""
    return row * (row - 1) // 2


@compiled
def add_listed(starts: Counts, ends: Counts, entries: Words, first: int, counters: Words) -> None:
    """Count the listed increments of the rows from `first`, in COUNTERS counts per cell, row by row."""
    for row in range(len(starts)):
        base = np.int64(COUNTERS) * (triangle(first + row) - triangle(first))
        for entry in range(starts[row], ends[row]):
            counters[base + np.int64(entries[entry])] += np.uint32(1)


@compiled
def cells_of_counters(counters: Words, first: int, last: int, minimum: int) -> Cells:
    """Return the cells with at least `minimum` pairs: rows, columns, and their counters (cells x
    COUNTERS)."""
    found = 0
    for cell in range(len(counters) // COUNTERS):
        if np.int64(counters[COUNTERS * cell + CROSS]) - counters[COUNTERS * cell + BOTH] >= minimum:
            found += 1
    rows = np.empty(found, np.uint32)
    columns = np.empty(found, np.uint32)
    counts = np.empty((found, COUNTERS), np.uint32)
    found = 0
    cell = 0
    for row in range(first, last):
        for column in range(row):
            base = COUNTERS * cell
            if np.int64(counters[base + CROSS]) - counters[base + BOTH] >= minimum:
                rows[found] = row
                columns[found] = column
                counts[found] = counters[base : base + COUNTERS]
                found += 1
            cell += 1
    return rows, columns, counts


@compiled
def list_sentence(
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
def list_rows(table: PairTable, first: int, last: int, ends: Counts, entries: Words) -> None:
    """List the increments of rows first to last - 1; those of row u are in `entries` up to `ends[u -
    first]`."""
    shared = np.empty(longest(table[0]), np.uint32)
    for pair in range(len(table[0]) - 1):
        reference, translation = sentences(table, pair)
        in_reference = len(reference) > 0 and reference[-1] >= first
        in_translation = len(translation) > 0 and translation[-1] >= first
        if in_reference:
            list_sentence(reference, translation, REFERENCE, first, last, ends, entries)
        if in_translation:
            list_sentence(translation, reference, TRANSLATION, first, last, ends, entries)
        if in_reference and in_translation:
            both = shared[: shared_words(reference, translation, shared)]
            list_sentence(both, both[:0], BOTH, first, last, ends, entries)


@compiled
def cells_of_listed(
    starts: Counts, ends: Counts, entries: Words, scratch: Words, first: int, minimum: int
) -> Cells:
    """Count the listed increments row by row, with the same result as `cells_of_counters` except for the
    order of columns.

    scratch: COUNTERS zeros per word of the vocabulary; zeros again afterwards.
    """
    # A kept cell has at least `minimum` entries. Memory that is not written to is not used.
    bound = len(entries) // minimum
    rows = np.empty(bound, np.uint32)
    columns = np.empty(bound, np.uint32)
    counts = np.empty((bound, COUNTERS), np.uint32)
    found = 0
    for row in range(len(starts)):
        for entry in range(starts[row], ends[row]):
            scratch[entries[entry]] += np.uint32(1)
        for entry in range(starts[row], ends[row]):
            base = np.int64(entries[entry]) & ~np.int64(COUNTERS - 1)
            if np.int64(scratch[base + CROSS]) - scratch[base + BOTH] >= minimum:
                rows[found] = first + row
                columns[found] = base // COUNTERS
                counts[found] = scratch[base : base + COUNTERS]
                found += 1
            scratch[base : base + COUNTERS] = 0
    return rows[:found].copy(), columns[:found].copy(), counts[:found].copy()
