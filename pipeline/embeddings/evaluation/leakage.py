"""Finds training pairs with a sentence of a development set, a test set or a held-out split, and reports or
drops them while the pairs are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.text.normalization import SentenceSet
from paraforge.base.text.pair_blocks import PairBlock

OF_WHAT = "of a development set, a test set or a held-out split"


@dataclass
class LeakageReport:
    """The leaked pairs found so far.

    pairs: checked training pairs. leaked: those with a sentence of any set or held-out split.
    dropped: how many of these were left out. by_set: leaked pairs by set or split.
    """

    pairs: int = 0
    leaked: int = 0
    dropped: int = 0
    by_set: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the report for a metrics file."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the report as text."""
        what = f"a sentence {OF_WHAT}"
        if not self.leaked:
            return [f"none of {self.pairs:,} training pairs has {what}"]
        share = 100 * self.leaked / self.pairs
        fate = "left out" if self.dropped else "kept"
        lines = [f"{self.leaked:,} of {self.pairs:,} training pairs ({share:.2f}%) have {what}: {fate}"]
        width = max(map(len, self.by_set))
        return lines + [f"  {name:{width}}  {count:>8,}" for name, count in self.by_set.items()]


class LeakageFilter:
    """Looks for training pairs in test sets. Either sentence counts; both sides are compared as
    `paraforge.corpus.selection.filters.decontamination` does: only lower-cased letters and digits.

        leakage = LeakageFilter({"dev": sentences})
        blocks = leakage(blocks)            # lazily; leakage.report is complete when they are used up

    Memory grows only with the test sets.
    """

    def __init__(self, test_sets: Mapping[str, Iterable[str]], drop: bool = True) -> None:
        """test_sets: unchanged test sentences by name. drop: whether to leave out leaked pairs, or only
        report them."""
        self.drop = drop
        self.report = LeakageReport()
        self.sentences = SentenceSet(test_sets)

    def __call__(self, blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
        """Yield the blocks, without leaked pairs if `drop` is set, and without empty blocks."""
        for block in blocks:
            leaked = self.look_at(block)
            if not self.drop or not leaked.any():
                yield block
                continue
            self.report.dropped += int(leaked.sum())
            keep = pa.array(~leaked)
            if not leaked.all():
                yield block.filter(keep)

    @property
    def looks(self) -> bool:
        """Return whether there are any sets or splits."""
        return bool(self.sentences.names)

    def look_at(self, block: PairBlock) -> npt.NDArray[np.bool_]:
        """Find leaked pairs, and update the report."""
        matches = [self.sentences.find(side) for side in (block.left, block.right)]
        leaked = (matches[0] >= 0) | (matches[1] >= 0)
        self.report.pairs += len(block)
        self.report.leaked += int(leaked.sum())
        for row in np.flatnonzero(leaked).tolist():
            numbers = [int(side[row]) for side in matches if side[row] >= 0]
            in_sets = {name for number in numbers for name in self.sentences.sets_of(number)}
            for name in sorted(in_sets, key=self.sentences.names.index):
                self.report.by_set[name] = self.report.by_set.get(name, 0) + 1
        return leaked
