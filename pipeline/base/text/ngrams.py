"""Compiled loops over token columns: n-grams shared by the two sides of a pair, as multisets, and sums of a
table's rows."""

from typing import Any

import numpy as np

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import IntArray
from paraforge.base.text.tokens import TokenColumn


@compiled
def sums_of_rows(ids: Any, offsets: Any, table: Any) -> Any:
    """Return rows of sums: row k is the sum of the table's rows ids[offsets[k]] to ids[offsets[k + 1] - 1],
    in this order."""
    sums = np.zeros((len(offsets) - 1, table.shape[1]), dtype=table.dtype)
    for row in range(len(sums)):
        total = sums[row]
        for place in range(offsets[row], offsets[row + 1]):
            vector = table[ids[place]]
            for k in range(len(total)):
                total[k] += vector[k]
    return sums


def shared_ngrams(reference: TokenColumn, translation: TokenColumn, highest: int) -> IntArray:
    """Return the sizes of the multiset intersections of both sides' n-grams, for n = 1 to `highest`.

    reference: tokens of the references.
    translation: tokens of the translations, over the same vocabulary, for the same rows.
    highest: the longest n-gram to count.

    Returns highest x rows, int64. Row n - 1: how many n-grams of each pair are in both sides, each counted
    as often as it is in the side that has it less often.

    Raises ValueError if the rows or the vocabularies differ.
    """
    rows = len(reference)
    if len(translation) != rows or translation.vocabulary is not reference.vocabulary:
        raise ValueError("both sides must have the same rows and share one vocabulary")
    shared = np.zeros((highest, rows), dtype=np.int64)
    _count_shared(reference.ids, reference.offsets, translation.ids, translation.offsets, shared)
    return shared


@compiled
def _count_shared(left: Any, left_offsets: Any, right: Any, right_offsets: Any, shared: Any) -> None:
    """Fill `shared`, n-gram lengths x rows, which is all zeros."""
    # A hash table of the translation's n-grams. The key of an n-gram is its last token and the slot of its
    # first n - 1 tokens, which was assigned before.
    names, unmatched = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    before = np.empty(64, dtype=np.int64)
    for row in range(shared.shape[1]):
        middle = right_offsets[row + 1] - right_offsets[row]
        tokens = np.concatenate(
            (
                right[right_offsets[row] : right_offsets[row + 1]],
                left[left_offsets[row] : left_offsets[row + 1]],
            )
        )
        slots = 64
        while slots < 2 * middle:
            slots *= 2
        if slots > len(names):
            names, unmatched = np.empty(slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
        if len(tokens) > len(before):
            before = np.empty(2 * len(tokens), dtype=np.int64)
        before[: len(tokens)] = 0
        for order in range(1, shared.shape[0] + 1):
            unmatched[:slots] = -1  # an empty slot
            common = 0
            for place in range(len(tokens) - order + 1):
                if before[place] < 0:
                    continue
                in_translation = place < middle
                if in_translation and place + order > middle:
                    before[place] = -1
                    continue
                name = before[place] << 32 | np.int64(tokens[place + order - 1])
                slot = ((name * 0x9E3779B97F4A7C1) >> 29) & (slots - 1)
                while unmatched[slot] >= 0 and names[slot] != name:
                    slot = (slot + 1) & (slots - 1)
                if in_translation:
                    if unmatched[slot] < 0:
                        names[slot], unmatched[slot] = name, 0
                    unmatched[slot] += 1
                    before[place] = slot
                else:
                    if unmatched[slot] > 0:
                        unmatched[slot] -= 1
                        common += 1
                    before[place] = slot if unmatched[slot] >= 0 else -1
            if common == 0:  # so no longer n-gram is shared
                break
            shared[order - 1, row] = common


def totals(tokens: TokenColumn, order: int) -> IntArray:
    """Return how many n-grams each row has: rows, int64."""
    return np.maximum(tokens.lengths - order + 1, 0)
