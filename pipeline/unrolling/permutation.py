"""A random order of any number of things that takes no memory: a pass over triples goes through it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from paraforge.embeddings.schedule import ORDER, generator_for

_ROUNDS = 6
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Permutation:
    """A permutation of 0 ... size - 1 that is a function of seed, epoch and place alone.

    A Feistel network over the next power of four permutes; a place that it moves beyond the size is moved
    again until it is not (Black and Rogaway 2002).
    """

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        self.size = size
        self._half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
        self._mask = np.uint64((1 << int(self._half)) - 1)
        self._keys = generator_for(seed, ORDER, epoch).integers(1 << 63, size=_ROUNDS, dtype=np.uint64)

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers at these places (0 to size - 1), int64, as many as `places`."""
        values = self._shuffle(places.astype(np.uint64))
        beyond = np.flatnonzero(values >= self.size)
        while len(beyond):
            values[beyond] = self._shuffle(values[beyond])
            beyond = beyond[values[beyond] >= self.size]
        return values.astype(np.int64)

    def _shuffle(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        left, right = values >> self._half, values & self._mask
        for key in self._keys:
            mixed = right + key
            for shift, multiplier in zip((30, 27), _MULTIPLIERS, strict=True):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * multiplier
            left, right = right, left ^ ((mixed >> np.uint64(31)) & self._mask)
        return (left << self._half) | right
