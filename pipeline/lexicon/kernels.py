"""Compiled inner loops of counting: which two words stand in the same pair, or in the same sentence.

A *pair table* is four arrays: offsets and word ids of the references, offsets and word ids of the
translations. The ids of a sentence are distinct and ascending, and ids are ranks by frequency: 0 is the most
frequent word. Two words are counted in the row of the rarer one, `u`, at the column of the more frequent one,
`v < u`, four counts a cell:

* CROSS, `#(u,v)`: u in one sentence of a pair and v in the other; 2 where a pair has it in both directions;
* REFERENCE and TRANSLATION: references (translations) with both words;
* BOTH: pairs with both words on both sides, the pairs that CROSS counts twice.

Two layouts. A *dense* row has a counter for each column; increments go through small buffers, one a stretch
of counters that fits the processor's cache, because one increment at a random place of a gigabyte costs as
much as twenty in the cache. A *sparse* row lists its increments and is counted when all are there: less
memory for a rare word in a large vocabulary.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from paraforge.compiled import compiled

CROSS: Final = 0
REFERENCE: Final = 1
TRANSLATION: Final = 2
BOTH: Final = 3
COUNTERS: Final = 4

DROPPED: Final = 0xFFFFFFFF
"""Rank of a word that is left out of the counts."""

# A stretch of 2^18 counters is 1 MiB, the second-level cache of a current core.
STRETCH_BITS: Final = 18
BUFFER_ENTRIES: Final = 2048

Offsets = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]


@compiled
def sentence_counts(ids: npt.NDArray[np.int32], offsets: Counts, words: int) -> Counts:
    """In how many sentences each of `words` words stands; a word counts once a sentence."""
    counts = np.zeros(words, np.int64)
    last = np.full(words, -1, np.int64)
    for sentence in range(len(offsets) - 1):
        for position in range(offsets[sentence], offsets[sentence + 1]):
            word = ids[position]
            if last[word] != sentence:
                last[word] = sentence
                counts[word] += 1
    return counts


@compiled
def distinct_ranks(ids: npt.NDArray[np.int32], offsets: Counts, ranks: Words) -> tuple[Offsets, Words]:
    """Each sentence's distinct words as ascending ranks, without the words whose rank is DROPPED."""
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
def count_row_increments(
    reference_offsets: Offsets,
    references: Words,
    translation_offsets: Offsets,
    translations: Words,
    rows: Counts,
) -> None:
    """Add to `rows[u]` how many increments the pair table makes in row u."""
    for pair in range(len(reference_offsets) - 1):
        reference, reference_end = reference_offsets[pair], reference_offsets[pair + 1]
        translation, translation_end = translation_offsets[pair], translation_offsets[pair + 1]
        before_reference = 0
        before_translation = 0
        shared = 0
        # Merge the two sides: at each word, how many smaller ones stand on each side is known.
        while reference < reference_end or translation < translation_end:
            in_reference = reference < reference_end and (
                translation == translation_end or references[reference] <= translations[translation]
            )
            in_translation = translation < translation_end and (
                reference == reference_end or translations[translation] <= references[reference]
            )
            if in_reference:
                # as the reference's word: columns in the translation and in the reference
                rows[references[reference]] += before_translation + before_reference
            if in_translation:
                rows[translations[translation]] += before_reference + before_translation
            if in_reference and in_translation:
                rows[references[reference]] += shared
                shared += 1
            if in_reference:
                reference += 1
                before_reference += 1
            if in_translation:
                translation += 1
                before_translation += 1


@compiled
def shared_words(
    references: Words,
    start: int,
    end: int,
    translations: Words,
    other_start: int,
    other_end: int,
    result: Words,
) -> int:
    """Write the words of both sentences to `result`, ascending; gives how many they are."""
    found = 0
    while start < end and other_start < other_end:
        if references[start] < translations[other_start]:
            start += 1
        elif references[start] > translations[other_start]:
            other_start += 1
        else:
            result[found] = references[start]
            found += 1
            start += 1
            other_start += 1
    return found


@compiled
def triangle(row: int) -> int:
    """Cells in the rows before `row`: row u has u cells."""
    return row * (row - 1) // 2


@compiled
def flush_stretch(counters: Words, buffer: Words, entries: int) -> None:
    """Count the entries of one stretch's buffer."""
    for entry in range(entries):
        counters[buffer[entry]] += np.uint32(1)


@compiled
def flush_all(counters: Words, buffers: Words, filled: Counts) -> None:
    """Count what is left in all buffers (stretches x BUFFER_ENTRIES)."""
    for stretch in range(len(filled)):
        flush_stretch(counters, buffers[stretch], filled[stretch])
        filled[stretch] = 0


@compiled
def add_dense(
    own: Words,
    own_start: int,
    own_end: int,
    other: Words,
    other_start: int,
    other_end: int,
    other_kind: int,
    own_kind: int,
    first: int,
    last: int,
    counters: Words,
    buffers: Words,
    filled: Counts,
) -> None:
    """Count one sentence's words as rows: its other sentence's words, then its own, as columns.

    A kind that is negative is not counted.
    """
    capacity = buffers.shape[1]
    for position in range(own_end - 1, own_start - 1, -1):
        row = int(own[position])
        if row < first:
            break
        if row >= last:
            continue
        base = np.int64(COUNTERS) * (triangle(row) - triangle(first))
        for columns in range(2):
            if columns == 0:
                kind, sentence, column, end = other_kind, other, other_start, other_end
            else:
                kind, sentence, column, end = own_kind, own, own_start, position
            if kind < 0:
                continue
            while column < end and sentence[column] < row:
                cell = base + np.int64(COUNTERS) * np.int64(sentence[column]) + kind
                stretch = cell >> STRETCH_BITS
                entries = filled[stretch]
                buffers[stretch, entries] = np.uint32(cell)
                entries += 1
                if entries == capacity:
                    flush_stretch(counters, buffers[stretch], entries)
                    entries = 0
                filled[stretch] = entries
                column += 1


@compiled
def count_dense(
    reference_offsets: Offsets,
    references: Words,
    translation_offsets: Offsets,
    translations: Words,
    first: int,
    last: int,
    counters: Words,
    buffers: Words,
    filled: Counts,
) -> None:
    """Count rows first to last - 1 of a pair table; what stays in the buffers is counted by `flush_all`.

    counters: COUNTERS for each cell of the rows, one row after the other.
    """
    shared = np.empty(longest(reference_offsets), np.uint32)
    for pair in range(len(reference_offsets) - 1):
        r0, r1 = reference_offsets[pair], reference_offsets[pair + 1]
        t0, t1 = translation_offsets[pair], translation_offsets[pair + 1]
        # Ids ascend: a pair whose last words come before the block has nothing for it.
        in_reference = r1 > r0 and references[r1 - 1] >= first
        in_translation = t1 > t0 and translations[t1 - 1] >= first
        if in_reference:
            add_dense(
                references,
                r0,
                r1,
                translations,
                t0,
                t1,
                CROSS,
                REFERENCE,
                first,
                last,
                counters,
                buffers,
                filled,
            )
        if in_translation:
            add_dense(
                translations,
                t0,
                t1,
                references,
                r0,
                r1,
                CROSS,
                TRANSLATION,
                first,
                last,
                counters,
                buffers,
                filled,
            )
        if in_reference and in_translation:
            both = shared_words(references, r0, r1, translations, t0, t1, shared)
            add_dense(shared, 0, both, shared, 0, 0, -1, BOTH, first, last, counters, buffers, filled)


@compiled
def longest(offsets: Offsets) -> int:
    """Words of the longest sentence."""
    length = 0
    for sentence in range(len(offsets) - 1):
        length = max(length, offsets[sentence + 1] - offsets[sentence])
    return length


@compiled
def add_sparse(
    own: Words,
    own_start: int,
    own_end: int,
    other: Words,
    other_start: int,
    other_end: int,
    other_kind: int,
    own_kind: int,
    first: int,
    last: int,
    ends: Counts,
    entries: Words,
) -> None:
    """As `add_dense`, but list the increments behind `ends[row - first]`, which moves on."""
    for position in range(own_end - 1, own_start - 1, -1):
        row = int(own[position])
        if row < first:
            break
        if row >= last:
            continue
        end = ends[row - first]
        if other_kind >= 0:
            column = other_start
            while column < other_end and other[column] < row:
                entries[end] = np.uint32(COUNTERS) * other[column] + np.uint32(other_kind)
                end += 1
                column += 1
        if own_kind >= 0:
            for column in range(own_start, position):
                entries[end] = np.uint32(COUNTERS) * own[column] + np.uint32(own_kind)
                end += 1
        ends[row - first] = end


@compiled
def list_sparse(
    reference_offsets: Offsets,
    references: Words,
    translation_offsets: Offsets,
    translations: Words,
    first: int,
    last: int,
    ends: Counts,
    entries: Words,
) -> None:
    """List the increments of rows first to last - 1; row u's lie in `entries` up to `ends[u - first]`."""
    shared = np.empty(longest(reference_offsets), np.uint32)
    for pair in range(len(reference_offsets) - 1):
        r0, r1 = reference_offsets[pair], reference_offsets[pair + 1]
        t0, t1 = translation_offsets[pair], translation_offsets[pair + 1]
        in_reference = r1 > r0 and references[r1 - 1] >= first
        in_translation = t1 > t0 and translations[t1 - 1] >= first
        if in_reference:
            add_sparse(references, r0, r1, translations, t0, t1, CROSS, REFERENCE, first, last, ends, entries)
        if in_translation:
            add_sparse(
                translations, t0, t1, references, r0, r1, CROSS, TRANSLATION, first, last, ends, entries
            )
        if in_reference and in_translation:
            both = shared_words(references, r0, r1, translations, t0, t1, shared)
            add_sparse(shared, 0, both, shared, 0, 0, -1, BOTH, first, last, ends, entries)


@compiled
def cells_of_dense(counters: Words, first: int, last: int, minimum: int) -> tuple[Words, Words, Words]:
    """The cells with at least `minimum` pairs: rows, columns, and their counters (cells x COUNTERS)."""
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
def cells_of_sparse(
    starts: Counts, ends: Counts, entries: Words, scratch: Words, first: int, minimum: int
) -> tuple[Words, Words, Words]:
    """Count the listed increments row by row; the same result as `cells_of_dense`, columns in no order.

    scratch: COUNTERS zeros a word of the vocabulary, zeros again afterwards.
    """
    # A kept cell has at least `minimum` entries. Memory that is not written to is not taken.
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
