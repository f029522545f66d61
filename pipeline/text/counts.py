"""How many sentences have each word."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from paraforge.compiled import compiled

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
