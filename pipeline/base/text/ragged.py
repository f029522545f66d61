"""Helpers for rows of different lengths stored end to end: their offsets and positions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

IntArray = npt.NDArray[np.int64]


def offsets_of(lengths: npt.NDArray[Any] | Sequence[int]) -> IntArray:
    """Return 0 and the running totals of lengths, int64, one longer than lengths."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: IntArray, lengths: npt.NDArray[Any]) -> IntArray:
    """Return ``starts[0], starts[0] + 1, ...`` (``lengths[0]`` numbers), then the next range, and so on."""
    ends = np.cumsum(lengths)
    offsets = np.repeat(starts - (ends - lengths), lengths)
    return np.asarray(offsets + np.arange(len(offsets)), np.int64)


def text_bytes(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], IntArray]:
    """Return the UTF-8 bytes of a string array without nulls, end to end, and the n + 1 offsets of its
    texts."""
    if not len(texts):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, begins, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(begins, kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]], offsets - offsets[0]
