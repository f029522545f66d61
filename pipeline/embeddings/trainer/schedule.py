"""Which pairs form which mega-batch: a pure function of seed and epoch, so that a run can resume at any
mega-batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

ORDER, MIX, SCRAMBLE = range(3)
"""What random numbers are for; with seed, epoch and mega-batch it makes a generator of its own."""


def generator_for(seed: int, *place: int) -> np.random.Generator:
    """Random numbers that depend on the seed and the place alone, not on what was drawn before."""
    return np.random.default_rng([seed, *place])


@dataclass(frozen=True)
class MegaBatch:
    """Pairs first to last (exclusive) of an epoch's order."""

    epoch: int
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    def mini_batches(self, batch_size: int) -> list[tuple[int, int]]:
        """First and last (exclusive) pair of each mini-batch, counted within the mega-batch."""
        return [(first, min(first + batch_size, len(self))) for first in range(0, len(self), batch_size)]


@dataclass(frozen=True)
class Schedule:
    """The order of training.

    With `anneal`, M is `min(mega_batch, 1 + updates // anneal)` at the start of each mega-batch, otherwise
    `mega_batch`. The last mini-batch of an epoch may be smaller; a single left-over pair, for which there
    would be no negative, joins the mega-batch before it.

    sources: number of each pair's source, int (pairs,), where a mini-batch is to hold pairs of one source
        alone; what is left over of each makes the last, mixed mini-batches of an epoch.
    """

    pairs: int
    batch_size: int
    mega_batch: int
    anneal: int
    seed: int
    sources: npt.NDArray[Any] | None = None

    def order(self, epoch: int) -> npt.NDArray[np.int64]:
        """The epoch's permutation of the pairs."""
        generator = generator_for(self.seed, ORDER, epoch)
        shuffled = generator.permutation(self.pairs)
        return shuffled if self.sources is None else self._by_source(shuffled, generator)

    def _by_source(
        self, shuffled: npt.NDArray[np.int64], generator: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """The same, in whole mini-batches of one source each, shuffled, and then the rest."""
        assert self.sources is not None
        source = self.sources[shuffled]
        grouped = np.argsort(source, kind="stable")
        rank = np.empty(self.pairs, dtype=np.int64)
        first_of_source = np.searchsorted(source[grouped], source)
        rank[grouped] = np.arange(self.pairs)
        rank -= first_of_source
        whole = np.bincount(source) // self.batch_size
        batch_of_pair = rank // self.batch_size
        fits = batch_of_pair < whole[source]
        # Each whole mini-batch gets a random place among all of them.
        starts = np.cumsum(whole) - whole
        places = generator.permutation(int(whole.sum()))
        place = places[starts[source[fits]] + batch_of_pair[fits]]
        return np.concatenate([shuffled[fits][np.argsort(place, kind="stable")], shuffled[~fits]])

    def mini_batches_of(self, updates: int) -> int:
        """M after this many updates."""
        return self.mega_batch if not self.anneal else min(self.mega_batch, 1 + updates // self.anneal)

    def following(self, epoch: int, position: int, updates: int) -> MegaBatch | None:
        """The mega-batch that starts at this position of the epoch's order; None at the end of the epoch."""
        if position >= self.pairs:
            return None
        last = min(position + self.batch_size * self.mini_batches_of(updates), self.pairs)
        if self.pairs - last == 1:
            last = self.pairs
        return MegaBatch(epoch, position, last)
