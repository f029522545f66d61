"""Counts the n-grams that two sides of a pair share, as multisets, for a whole shard at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from paraforge.text.tokens import TokenColumn

IntArray = npt.NDArray[np.int64]

# A block's arrays of some hundred kilobytes stay in the cache and are not mapped anew each time.
_BLOCK_ROWS: Final = 2048


def shared_ngrams(reference: TokenColumn, translation: TokenColumn, highest: int) -> IntArray:
    """Sizes of the multiset intersections of both sides' n-grams, for n = 1 to `highest`.

    reference: tokens of the references.
    translation: tokens of the translations, over the same vocabulary, for the same rows.
    highest: the longest n-gram to count.

    Returns highest x rows, int64. Row n - 1: how many n-grams of each pair are in both sides, each counted
    as often as it is in the side that has it less often.

    Raises ValueError: other rows or another vocabulary.
    """
    rows = len(reference)
    if len(translation) != rows or translation.vocabulary is not reference.vocabulary:
        raise ValueError("both sides must have the same rows and share one vocabulary")
    shared = np.zeros((highest, rows), dtype=np.int64)
    for first in range(0, rows, _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, rows)
        block = shared[:, first:last]
        _count_shared(reference.slice(first, last), translation.slice(first, last), block)
    return shared


def _count_shared(reference: TokenColumn, translation: TokenColumn, shared: IntArray) -> None:
    """Fill `shared`, n-gram lengths x rows, which is all zeros."""
    tokens = np.concatenate([reference.ids, translation.ids]).astype(np.int64)
    row = np.concatenate([reference.row_numbers, translation.row_numbers])
    in_translation = np.arange(len(tokens)) >= len(reference.ids)
    # How many tokens of the same text follow each token.
    ends = np.concatenate([reference.offsets[1:], translation.offsets[1:] + len(reference.ids)])
    lengths = np.concatenate([reference.lengths, translation.lengths])
    behind = np.repeat(ends, lengths) - np.arange(len(tokens)) - 1

    # An n-gram is named by the number of its first n - 1 tokens within its pair, and its last token. Only
    # positions whose shorter n-grams are shared can begin a shared longer one; the others are left out.
    prefix = row
    positions = np.arange(len(tokens), dtype=np.int64)
    token_is_shared = np.ones(len(tokens) + 1, dtype=bool)
    names = len(reference.vocabulary)
    for order, counts in enumerate(shared, start=1):
        last = np.minimum(positions + order - 1, len(tokens))
        possible = (behind[positions] >= order - 1) & token_is_shared[last]
        positions = positions[possible]
        if not len(positions):
            break
        # Both factors are below 2 ** 31, so this does not overflow.
        name = prefix[possible] * names + tokens[positions + order - 1]
        by_name = np.argsort(name)
        sorted_name = name[by_name]
        begins = np.flatnonzero(np.concatenate([[True], sorted_name[1:] != sorted_name[:-1]]))
        total = np.diff(np.append(begins, len(name)))
        of_translation = np.add.reduceat(in_translation[positions[by_name]], begins, dtype=np.int64)
        common = np.minimum(of_translation, total - of_translation)
        row_of_name = row[positions[by_name[begins]]]
        counts[:] = np.bincount(row_of_name, weights=common, minlength=len(counts)).astype(np.int64)

        number = np.empty(len(name), dtype=np.int64)
        number[by_name] = np.repeat(np.arange(len(begins)), total)
        is_shared = (common > 0)[number]
        if order == 1:
            token_is_shared[positions] = is_shared
        positions = positions[is_shared]
        prefix = number[is_shared]


def totals(tokens: TokenColumn, order: int) -> IntArray:
    """How many n-grams each row has: rows, int64."""
    return np.maximum(tokens.lengths - order + 1, 0)
