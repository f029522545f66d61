"""Compiled loops that count word pairs in sentences of word numbers.

A *pair table* has the sentences of pairs as offsets and word ids: of the references, of the translations, and
of the words that both have. The ids of a sentence are distinct and ascending, and ids are ranks by frequency:
0 is the most frequent word. Two words are counted in the row of the rarer one, `u`, at the column of the more
frequent one, `v < u`, with four counts per cell:

* CROSS, `#(u,v)`: u in one sentence of a pair and v in the other; 2 if a pair has both directions;
* REFERENCE and TRANSLATION: references (translations) with both words;
* BOTH: pairs with both words on both sides, the pairs that CROSS counts twice.

A row's increments are first listed, then counted, so that the counters stay in the processor's cache.
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

Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Sentences = tuple[npt.NDArray[np.int32], Words]
"""Offsets and word ids."""
PairTable = tuple[Sentences, Sentences, Sentences]
Cells = tuple[Counts, Counts, Words]
"""Rows, columns, and counts (cells x COUNTERS)."""


@compiled
def sentence(sentences: Sentences, number: int) -> Words:
    """Return the words of a sentence."""
    offsets, words = sentences
    return words[offsets[number] : offsets[number + 1]]


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
    references, translations, shared = table
    for pair in range(len(references[0]) - 1):
        reference, translation = sentence(references, pair), sentence(translations, pair)
        both = sentence(shared, pair)
        list_sentence(reference, translation, REFERENCE, first, last, ends, entries)
        list_sentence(translation, reference, TRANSLATION, first, last, ends, entries)
        list_sentence(both, both[:0], BOTH, first, last, ends, entries)


@compiled
def count_listed(
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
    found = 0
    for row in range(len(starts)):
        for entry in range(starts[row], ends[row]):
            scratch[entries[entry]] += np.uint32(1)
        for entry in range(starts[row], ends[row]):
            base = np.int64(entries[entry]) & ~np.int64(COUNTERS - 1)
            listed = scratch[base + CROSS] + scratch[base + REFERENCE] + scratch[base + TRANSLATION]
            if listed and np.int64(scratch[base + CROSS]) - scratch[base + BOTH] >= minimum:
                rows[found] = first + row
                columns[found] = base // COUNTERS
                counts[found] = scratch[base : base + COUNTERS]
                found += 1
            scratch[base : base + COUNTERS] = 0
    return rows[:found].copy(), columns[:found].copy(), counts[:found].copy()
