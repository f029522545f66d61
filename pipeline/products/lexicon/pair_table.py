"""Pairs of sentences as word numbers, and compiled loops over them.

A *pair table* is four arrays: offsets and word ids of the references, offsets and word ids of the
translations. The ids of a sentence are distinct and ascending, and ids are ranks by frequency: 0 is the most
frequent word. Two words are counted in the row of the rarer one, `u`, at the column of the more frequent one,
`v < u`, four counts a cell:

* CROSS, `#(u,v)`: u in one sentence of a pair and v in the other; 2 where a pair has it in both directions;
* REFERENCE and TRANSLATION: references (translations) with both words;
* BOTH: pairs with both words on both sides, the pairs that CROSS counts twice.

:mod:`paraforge.products.lexicon.row_counts` counts a row in one of two layouts.
"""

from __future__ import annotations

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
"""Rank of a word that is left out of the counts."""

Offsets = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Cells = tuple[Words, Words, Words]
"""Rows, columns, and their counts (cells x COUNTERS)."""


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
        # Merge the two sides: at each word, the number of smaller ones on each side is known.
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
def longest(offsets: Offsets) -> int:
    """Words of the longest sentence."""
    length = 0
    for sentence in range(len(offsets) - 1):
        length = max(length, offsets[sentence + 1] - offsets[sentence])
    return length
