"""Finds the words of ASCII texts, some twenty times as fast as Arrow's regular expressions."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.compiled import compiled
from paraforge.base.text.ragged import text_bytes

_SPACE = 32
# For each byte, the letter or digit in lower case, or a space.
_LOWERED = np.full(256, _SPACE, np.uint8)
for _character in map(chr, range(128)):
    if _character.isalnum():
        _LOWERED[ord(_character)] = ord(_character.lower())


def ascii_words(texts: pa.Array) -> pa.Array:
    """Return the same as :func:`paraforge.base.text.normalization.normalize`, for ASCII texts.

    texts: n strings of either width, without nulls.
    """
    letters, bounds = text_bytes(texts)
    width: type[np.int32 | np.int64] = np.int32 if texts.type == pa.string() else np.int64
    words, ends = np.empty(len(letters), np.uint8), np.zeros(len(texts) + 1, width)
    written = _reduce(letters, bounds, _LOWERED, words, ends)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(words[:written])]
    return pa.Array.from_buffers(texts.type, len(texts), buffers)


@compiled
def _reduce(
    letters: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    lowered: NDArray[np.uint8],
    words: NDArray[np.uint8],
    ends: NDArray[np.integer],
) -> int:
    """Write the words of each text, separated by spaces. Returns the number of bytes."""
    written = 0
    for text in range(len(bounds) - 1):
        first = written
        for place in range(bounds[text], bounds[text + 1]):
            letter = lowered[letters[place]]
            if letter != 32 or (written > first and words[written - 1] != 32):
                words[written] = letter
                written += 1
        if written > first and words[written - 1] == 32:
            written -= 1
        ends[text + 1] = written
    return written
