"""Slow, obvious counts and PMIs."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

Sentence = str
Pair = tuple[str, str]


@dataclass
class Oracle:
    """All counts of a corpus of (reference, translation), by the definitions."""

    corpus: Sequence[tuple[Sentence, Sentence]]
    single: Counter[str] = field(default_factory=Counter)
    single_side: tuple[Counter[str], Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    cross: Counter[Pair] = field(default_factory=Counter)
    pairs: Counter[Pair] = field(default_factory=Counter)
    within: tuple[Counter[Pair], Counter[Pair]] = field(default_factory=lambda: (Counter(), Counter()))

    def __post_init__(self) -> None:
        for reference, translation in self.corpus:
            sides = (set(reference.split()), set(translation.split()))
            opposite: set[Pair] = set()
            for first, second in (sides, sides[::-1]):  # every pair in both directions
                self.single.update(first)
                for u in first:
                    for v in second:
                        if u != v:
                            self.cross[u, v] += 1
                            opposite |= {(u, v), (v, u)}
            self.pairs.update(opposite)
            for side, words in enumerate(sides):
                self.single_side[side].update(words)
                self.within[side].update((u, v) for u in words for v in words if u != v)

    def cross_pmi(self, u: str, v: str) -> float:
        number = 2 * len(self.corpus)
        return math.log(self.cross[u, v] * number / (self.single[u] * self.single[v]))

    def ordinary_pmi(self, u: str, v: str) -> float | None:
        values = []
        for side in (0, 1):
            joint = self.within[side][u, v]
            if joint:
                product = self.single_side[side][u] * self.single_side[side][v]
                values.append(math.log(joint * len(self.corpus) / product))
        return sum(values) / len(values) if values else None

    def expected(self, u: str, v: str) -> float:
        return self.single[u] * self.single[v] / (2 * len(self.corpus))
