"""Makes any number of realistic sentence pairs without repeated texts, so that no cache helps a benchmark.

Beyond the real ones, pair *n* is one of them with about a quarter of its words exchanged for words of
similar frequency, the same ones on both sides. One exchanged word in 2,000 is in no other text, because the
vocabulary of a corpus grows with it. Among a million pairs 3 texts in 10,000 are there twice.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.shards.lineage import mix
from paraforge.base.text.ragged import ranges

BLOCK = 50_000
Pair = tuple[str, str]

_EXCHANGED = 0.25
_NEW_WORD = 2_000
# Shorter texts have too few variants.
_LEAST_WORDS = 5
# Words among which the one for the most frequent word is chosen; more for others.
_CHOICE = 20


class DistinctPairs:
    """Endless distinct pairs, numbered from 0, made from real ones; see the module.

    pairs: the real ones of five words a side or more, without those that repeat a text.
    """

    def __init__(self, pairs: Sequence[Pair], seed: int = 1) -> None:
        self.pairs = _without_repetition(pairs)
        if not self.pairs:
            raise ValueError(f"no pair has {_LEAST_WORDS} words a side")
        random.Random(seed).shuffle(self.pairs)
        counts = Counter(word for pair in self.pairs for text in pair for word in text.split())
        self._words = sorted(counts, key=lambda word: (-counts[word], word))
        self._names = pa.array(self._words)
        number = {word: place for place, word in enumerate(self._words)}
        self._sides = []
        for side in range(2):
            split = [[number[word] for word in pair[side].split()] for pair in self.pairs]
            starts = np.cumsum([0, *map(len, split)])
            self._sides.append((np.concatenate(split).astype(np.uint64), starts))
        self._seed = np.uint64(seed)

    def blocks(self, pairs: int) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield both sides of the first ``pairs`` pairs, block by block."""
        for first in range(0, pairs, BLOCK):
            yield self.texts(np.arange(first, min(first + BLOCK, pairs)))

    def texts(self, numbers: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
        """Return both sides of the pairs with these numbers."""
        base = numbers % len(self.pairs)
        sides = []
        limit = np.full(len(numbers), np.uint64(_EXCHANGED * 2**64))
        for words, starts in self._sides:
            lengths = starts[base + 1] - starts[base]
            ids = words[ranges(starts[base], lengths)]
            owners = np.repeat(np.arange(len(numbers)), lengths)
            # The same word of a pair has the same number on both sides, and so the same fate.
            dice = _mixed(ids ^ _mixed(numbers[owners].astype(np.uint64) ^ self._seed << np.uint64(40)))
            offsets = np.append(0, np.cumsum(lengths))
            limit = np.maximum(limit, np.minimum.reduceat(dice, offsets[:-1]))
            sides.append((ids, owners, dice, offsets))
        return self._joined(numbers, limit, sides[0]), self._joined(numbers, limit, sides[1])

    def _joined(self, numbers: NDArray[np.int64], limit: NDArray[np.uint64], side: Any) -> pa.Array:
        ids, owners, dice, offsets = side
        exchanged = (dice <= limit[owners]) & (numbers[owners] >= len(self.pairs))
        second = _mixed(dice)
        width = np.uint64(_CHOICE) + ids // np.uint64(2)
        low = ids - np.minimum(ids, width // np.uint64(2))
        other = low + second % width
        other += other >= ids
        other = np.minimum(other, np.uint64(len(self._words) - 1))
        words = self._names.take(pa.array(np.where(exchanged, other, ids).astype(np.int64)))
        new = exchanged & ((second >> np.uint64(32)) % np.uint64(_NEW_WORD) == 0)
        if new.any():
            words = pc.replace_with_mask(words, pa.array(new), pa.array(self._blends(second[new])))
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words), " ")

    def _blends(self, dice: NDArray[np.uint64]) -> list[str]:
        """Words that begin as one word and end as another two."""
        count, found = len(self._words), []
        for number in dice.tolist():
            parts = [self._words[number // count**power % count] for power in range(3)]
            found.append("".join(part[: 1 + len(part) // 2] for part in parts))
        return found


def _without_repetition(pairs: Sequence[Pair]) -> list[Pair]:
    seen: set[str] = set()
    kept = []
    for pair in pairs:
        texts = [" ".join(text.split()) for text in pair]
        if min(len(text.split()) for text in texts) >= _LEAST_WORDS and seen.isdisjoint(texts):
            seen.update(texts)
            kept.append((texts[0], texts[1]))
    return kept


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply splitmix64, which maps each number to another one without any pattern."""
    return mix(values + np.uint64(0x9E3779B97F4A7C15))
