"""Selects and renumbers the tokens of a batch on a CPU, each in one pass; see `batches.Bags`."""

import numpy as np

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import IntArray


@compiled
def select(ids: IntArray, offsets: IntArray, indices: IntArray) -> tuple[IntArray, IntArray]:
    """Return the ids of the sentences with these numbers, and their offsets."""
    selected_offsets = np.zeros(len(indices) + 1, np.int64)
    for place, sentence in enumerate(indices):
        length = offsets[sentence + 1] - offsets[sentence]
        selected_offsets[place + 1] = selected_offsets[place] + length
    selected = np.empty(selected_offsets[-1], np.int64)
    for place, sentence in enumerate(indices):
        tokens = ids[offsets[sentence] : offsets[sentence + 1]]
        selected[selected_offsets[place] : selected_offsets[place + 1]] = tokens
    return selected, selected_offsets


@compiled
def compact(ids: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the index of each token's id among the distinct ids; the distinct ids, ascending; the tokens
    sorted by id, stably; and where each distinct id starts among these, followed by their number."""
    size = ids.max() + 1 if len(ids) else 0
    counts = np.zeros(size, np.int64)
    for one in ids:
        counts[one] += 1
    distinct = np.flatnonzero(counts)
    starts = np.zeros(len(distinct) + 1, np.int64)
    for number, one in enumerate(distinct):
        starts[number + 1] = starts[number] + counts[one]
        counts[one] = number  # no longer needed as a count
    numbers, order = counts[ids], np.empty(len(ids), np.int64)
    following = starts[:-1].copy()
    for token, number in enumerate(numbers):
        order[following[number]] = token
        following[number] += 1
    return numbers, distinct, order, starts
