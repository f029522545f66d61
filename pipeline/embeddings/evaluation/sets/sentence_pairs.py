"""Sentence pairs with human judgements of how similar they are: one set of an evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SentencePairs:
    """One set.

    name: of the set, such as `2012.MSRpar`. first, second: the sentences, unchanged.
    group: whose figure is the unweighted mean over its sets: a year, or the set itself.
    gold: judgements, higher is more similar; NaN where a row has none.
    """

    name: str
    group: str
    first: Sequence[str]
    second: Sequence[str]
    gold: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def unscored(self) -> int:
        """Rows without a judgement."""
        return int(np.isnan(self.gold).sum())

    @property
    def fingerprint(self) -> str:
        """Hash of pairs and judgements, whatever the set's name and the order of its rows."""
        rows = sorted(map(repr, zip(self.first, self.second, self.gold.tolist(), strict=True)))
        return hashlib.sha256(repr(rows).encode()).hexdigest()

    @property
    def sentences(self) -> list[str]:
        """All first sentences, then all second ones."""
        return [*self.first, *self.second]

    @cached_property
    def scored(self) -> SentencePairs:
        """The rows that have a judgement."""
        return self.select(np.flatnonzero(~np.isnan(self.gold))) if self.unscored else self

    def select(self, rows: npt.NDArray[np.int64]) -> SentencePairs:
        """Some of the rows, in this order."""
        return replace(
            self,
            first=[self.first[row] for row in rows],
            second=[self.second[row] for row in rows],
            gold=self.gold[rows],
        )


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or where it is taken the name with a number: `dev (2)`."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free
