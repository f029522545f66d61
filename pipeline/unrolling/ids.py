"""Sentences as ids of words, cut to a length, each with its end behind it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

END: Final = "\n"
"""The end of a sentence as a word of the vocabulary. No token holds white space, so none is taken for it."""


def with_ends(
    ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], end: int, maximum_length: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The first `maximum_length` - 1 words of each sentence, and `end`.

    ids, offsets: sentence k has the ids offsets[k] to offsets[k + 1]. Returns the same of the result.
    """
    lengths = np.minimum(np.diff(offsets), maximum_length - 1) + 1
    new_offsets = np.zeros(len(offsets), dtype=np.int64)
    np.cumsum(lengths, out=new_offsets[1:])
    shift = np.repeat(offsets[:-1] - new_offsets[:-1], lengths)
    places = np.arange(int(new_offsets[-1])) + shift
    ends = new_offsets[1:] - 1
    places[ends] = 0  # any place that exists; the end is written over it
    result = (ids[places] if len(ids) else np.zeros(len(places), dtype=ids.dtype)).copy()
    result[ends] = end
    return result, new_offsets
