"""Measures repetitions in a translation that its reference does not have, a sign of a failing model."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import offsets_of
from paraforge.base.text.tokens import TokenColumn

LENGTH: Final = 6
"""Characters per piece. Most pieces of this length occur only once in good text."""


def repeated_shares(references: TokenColumn, translations: TokenColumn) -> npt.NDArray[np.float32]:
    """Return the share of the translation's pieces that are excess repetitions, (pairs,) float32, 0 to 1.

    Pieces are all runs of LENGTH characters of the tokens joined by blanks, with one blank at either end. A
    piece that occurs n times in the translation and m times in the reference is repeated n - max(1, m) times,
    whether it is part of repeated characters, words or phrases. The share is 0 for a text without pieces.

    references, translations: over one vocabulary.
    """
    text = " " + "".join(f"{token} " for token in references.vocabulary)
    lengths = np.array([len(token) + 1 for token in references.vocabulary], dtype=np.int64)
    sizes = [np.diff(offsets_of(lengths[side.ids])[side.offsets]) for side in (references, translations)]
    shares = _shares(
        np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4"),
        np.cumsum(lengths) - lengths + 1,
        lengths,
        references.ids,
        references.offsets,
        translations.ids,
        translations.offsets,
        LENGTH,
        1 + max(int(size.max(initial=0)) for size in sizes),
    )
    return np.asarray(shares, dtype=np.float32)


@compiled
def _pieces(
    codes: Any, starts: Any, lengths: Any, tokens: Any, length: int, letters: Any, hashes: Any
) -> int:
    """Write the characters of a row of tokens, and the hash of each piece. Returns the number of pieces."""
    base = np.uint64(0x9E3779B97F4A7C15)
    oldest = np.uint64(1)  # the factor of the character before a piece
    for _ in range(length):
        oldest *= base
    # A row begins with a blank; each token already ends with one.
    letters[0] = np.uint64(codes[0]) + np.uint64(1)
    count = 1
    for token in tokens:
        for position in range(starts[token], starts[token] + lengths[token]):
            letters[count] = np.uint64(codes[position]) + np.uint64(1)
            count += 1
    value = np.uint64(0)
    for place in range(min(length - 1, count)):
        value = value * base + letters[place]
    for place in range(length - 1, count):
        value = value * base + letters[place]
        if place >= length:
            value -= letters[place - length] * oldest
        hashes[place - length + 1] = value ^ (value >> np.uint64(29))
    return max(0, count - length + 1)


@compiled
def _slot(table: Any, counts: Any, slots: int, value: Any) -> int:
    """Return where a piece is in the hash table, or the empty slot where it would be."""
    slot = np.int64(value & np.uint64(slots - 1))
    while counts[slot] and table[slot] != value:
        slot = (slot + 1) & (slots - 1)
    return int(slot)


@compiled
def _shares(
    codes: Any,
    starts: Any,
    lengths: Any,
    left: Any,
    left_offsets: Any,
    right: Any,
    right_offsets: Any,
    length: int,
    most: int,
) -> Any:
    """Return the shares; most: the most characters of a row with its blanks."""
    shares = np.zeros(len(left_offsets) - 1, dtype=np.float32)
    letters, hashes = np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.uint64)
    slots = 64
    while slots < 2 * most:
        slots *= 2
    table = np.zeros(slots, dtype=np.uint64)
    counts = np.zeros(slots, dtype=np.int32)
    expected = np.zeros(slots, dtype=np.int32)
    for row in range(len(shares)):
        second = right[right_offsets[row] : right_offsets[row + 1]]
        total = _pieces(codes, starts, lengths, second, length, letters, hashes)
        slots = 64
        while slots < 2 * total:
            slots *= 2
        counts[:slots] = 0
        distinct = 0
        for k in range(total):
            slot = _slot(table, counts, slots, hashes[k])
            distinct += counts[slot] == 0
            table[slot] = hashes[k]
            counts[slot] += 1
        if distinct == total:
            continue
        first = left[left_offsets[row] : left_offsets[row + 1]]
        expected[:slots] = 0
        for k in range(_pieces(codes, starts, lengths, first, length, letters, hashes)):
            expected[_slot(table, counts, slots, hashes[k])] += 1
        repeated = 0
        for slot in range(slots):
            repeated += max(0, counts[slot] - max(1, expected[slot]))
        shares[row] = repeated / total
    return shares
