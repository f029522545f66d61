"""Counts rows of rare words: their increments are listed, and counted when all are there, which takes less
memory than a counter for each column of a large vocabulary."""

from __future__ import annotations

import numpy as np

from paraforge.compiled import compiled
from paraforge.lexicon.pair_table import (
    BOTH,
    COUNTERS,
    CROSS,
    REFERENCE,
    TRANSLATION,
    Cells,
    Counts,
    Offsets,
    Words,
    longest,
    shared_words,
)


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
    """List the increments of rows first to last - 1; row u's are in `entries` up to `ends[u - first]`."""
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
def cells_of_sparse(
    starts: Counts, ends: Counts, entries: Words, scratch: Words, first: int, minimum: int
) -> Cells:
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
