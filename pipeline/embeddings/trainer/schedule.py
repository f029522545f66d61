"""Assigns pairs to mega-batches as a pure function of seed and epoch, so that a run can resume at any
mega-batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.text.ragged import ranges

ORDER, MIX, SCRAMBLE = range(3)
"""Purposes of random numbers; each combination with seed, epoch and mega-batch has its own generator."""
WHOLE = 1 << 23
"""Up to this many pairs are shuffled completely, with 8 bytes of memory per pair and random reads. Of more
pairs, blocks of `BLOCK` consecutive pairs are shuffled, then the pairs in each `WINDOW` of that order. This
needs memory for one window, whose pairs are adjacent on disk in runs."""
WINDOW = 1 << 20
BLOCK = 1 << 12
MEGA_BATCHES = 256
"""A window has at least this many mega-batches, because otherwise paraphrases that are adjacent in the files
would be each other's negatives."""


def generator_for(seed: int, *place: int) -> np.random.Generator:
    """Return a generator that depends only on the seed and the position, not on earlier draws."""
    return np.random.default_rng([seed, *place])


def spans(length: int, size: int) -> list[tuple[int, int]]:
    """Cut a length into parts of `size`, the last of which may be smaller: first and last (exclusive)."""
    return [(first, min(first + size, length)) for first in range(0, length, size)]


@dataclass(frozen=True)
class Schedule:
    """The order of training.

    With `anneal`, M is `min(mega_batch, 1 + updates // anneal)` at the start of each mega-batch, otherwise
    `mega_batch`. The last mini-batch of an epoch may be smaller; a single left-over pair, for which there
    would be no negative, joins the mega-batch before it.

    sources: number of each pair's source, int (pairs,), if a mini-batch should have pairs of only one source;
        the remaining pairs form the last, mixed mini-batches of an epoch.
    """

    pairs: int
    batch_size: int
    mega_batch: int
    anneal: int
    seed: int
    sources: npt.NDArray[Any] | None = None

    def order(self, epoch: int) -> Order:
        """Return the epoch's permutation of the pairs."""
        return Order(self, epoch)

    def by_source(
        self, shuffled: npt.NDArray[np.int64], generator: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Return shuffled pairs in shuffled whole mini-batches of one source each, then the rest."""
        assert self.sources is not None
        source = self.sources[shuffled]
        grouped = np.argsort(source, kind="stable")
        rank = np.empty(len(shuffled), dtype=np.int64)
        first_of_source = np.searchsorted(source[grouped], source)
        rank[grouped] = np.arange(len(shuffled))
        rank -= first_of_source
        batches = np.bincount(source) // self.batch_size
        batch_of_pair = rank // self.batch_size
        fits = batch_of_pair < batches[source]
        # Each whole mini-batch gets a random position among all of them.
        starts = np.cumsum(batches) - batches
        places = generator.permutation(int(batches.sum()))
        place = places[starts[source[fits]] + batch_of_pair[fits]]
        return np.concatenate([shuffled[fits][np.argsort(place, kind="stable")], shuffled[~fits]])

    def mini_batches_of(self, updates: int) -> int:
        """Return M after this many updates."""
        return self.mega_batch if not self.anneal else min(self.mega_batch, 1 + updates // self.anneal)

    def end(self, first: int, updates: int) -> int:
        """Return the end of the mega-batch that starts at position `first` of an epoch's order."""
        last = min(first + self.batch_size * self.mini_batches_of(updates), self.pairs)
        return self.pairs if self.pairs - last == 1 else last


class Order:
    """An epoch's permutation of the pairs; `order[first:last]` are the numbers of some of them, int64.

    window: number of positions that are shuffled among themselves: all, or a multiple of the mini-batch.
    """

    def __init__(self, schedule: Schedule, epoch: int) -> None:
        """Draw the order of the blocks, 16 bytes each; a window is drawn on demand."""
        self._schedule = schedule
        self._epoch = epoch
        self._drawn: tuple[int, npt.NDArray[np.int64]] | None = None
        pairs, size = schedule.pairs, schedule.batch_size
        self._windowed = pairs > WHOLE
        if not self._windowed:
            self.window = max(1, pairs)
            return
        self.window = max(1, MEGA_BATCHES * schedule.mega_batch, WINDOW // size) * size
        blocks = generator_for(schedule.seed, ORDER, epoch).permutation(-(-pairs // BLOCK))
        self._firsts = blocks * BLOCK
        self._ends = np.cumsum(np.minimum(BLOCK, pairs - self._firsts))

    def __getitem__(self, places: slice) -> npt.NDArray[np.int64]:
        """Return the pairs at these places, one after the other."""
        first, last, _ = places.indices(self._schedule.pairs)
        parts = []
        for number in range(first // self.window, -(-last // self.window)):
            begin = number * self.window
            parts.append(self._window(number)[max(first - begin, 0) : last - begin])
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _window(self, number: int) -> npt.NDArray[np.int64]:
        if self._drawn is None or self._drawn[0] != number:
            self._drawn = number, self._draw(number)
        return self._drawn[1]

    def _draw(self, number: int) -> npt.NDArray[np.int64]:
        schedule = self._schedule
        if not self._windowed:
            generator = generator_for(schedule.seed, ORDER, self._epoch)
            shuffled = generator.permutation(schedule.pairs)
        else:
            first, last = number * self.window, min((number + 1) * self.window, schedule.pairs)
            low, high = np.searchsorted(self._ends, (first, last - 1), "right")
            ends = self._ends[low : high + 1]
            firsts = self._firsts[low : high + 1]
            sizes = np.minimum(BLOCK, schedule.pairs - firsts)
            begin = first - int(ends[0] - sizes[0])
            # Not from 0, which is used for the order of the blocks.
            generator = generator_for(schedule.seed, ORDER, self._epoch, 1 + number)
            shuffled = generator.permutation(ranges(firsts, sizes)[begin : begin + last - first])
        return shuffled if schedule.sources is None else schedule.by_source(shuffled, generator)
