"""Sentence pairs with human judgements of how similar they are: one set of an evaluation, and rows of fields
as sets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paraforge.base.errors import InputError
from paraforge.base.text.lines import Row, finite_number


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


_STS_BENCHMARK_COLUMNS = 7


class UnscoredError(InputError):
    """A set whose header names two sentences and no score, as the test sets of some tasks are given out."""


@dataclass(frozen=True)
class RowFields:
    """Where the fields of a row are. exact: whether another number of fields than this is an error.
    split: which part of the data a row belongs to, where a file has several."""

    gold: int
    first: int
    second: int
    exact: int | None = None
    split: int | None = None

    @property
    def needed(self) -> int:
        """Fields that a row has at least."""
        return max(self.gold, self.first, self.second, self.split or 0) + 1


def layout_by_form(fields: Sequence[str]) -> RowFields | None:
    """Where the fields of a first row without a header are; None where it is no row of a set."""
    count = len(fields)
    # The last columns of STS Benchmark name the sources of the sentences; not every row has them. The first
    # is a genre: behind a score, other columns are those that a set may have further.
    genre = finite_number(fields[0]) is None
    if count >= _STS_BENCHMARK_COLUMNS and genre and _may_be_score(fields[4]):
        return RowFields(4, 5, 6)
    if count >= 3 and _may_be_score(fields[0]):
        return RowFields(0, 1, 2, exact=count)
    if count >= 3 and _may_be_score(fields[2]):
        return RowFields(2, 0, 1, exact=count)
    return None


def _may_be_score(field: str) -> bool:
    return not field.strip() or finite_number(field) is not None


def read_score(field: str, path: Path, line: int) -> float:
    """A judgement, NaN where there is none."""
    if not field.strip():
        return math.nan
    value = finite_number(field)
    if value is None:
        remedy = "Correct the line; a row without a score has nothing in its place."
        raise InputError(f"the score {field[:40]!r} is no number", path, line, remedy)
    return value


def collect(rows: Iterable[Row], layout: RowFields, path: Path, name: str, group: str) -> list[SentencePairs]:
    """The rows as one set, or as a set for each part that they name; none where there are no rows."""
    parts: dict[str, tuple[list[str], list[str], list[float]]] = {}
    for number, fields in rows:
        count = len(fields)
        if count < layout.needed or (layout.exact is not None and count != layout.exact):
            remedy = "Correct the line: a tab too many or too few, or a line break inside a sentence."
            raise InputError(
                f"{count} fields, {layout.exact or layout.needed} are expected", path, number, remedy
            )
        score = read_score(fields[layout.gold], path, number)
        left, right = fields[layout.first].strip(), fields[layout.second].strip()
        if not math.isnan(score) and not (left and right):
            remedy = "Correct the line, or remove its score."
            raise InputError("a scored pair with a blank sentence", path, number, remedy)
        part = "" if layout.split is None else fields[layout.split].strip()
        first, second, gold = parts.setdefault(part, ([], [], []))
        first.append(left)
        second.append(right)
        gold.append(score)
    sets = []
    for part, (first, second, gold) in parts.items():
        own = f"{name}.{part}" if part else name
        sets.append(
            SentencePairs(own, own if group == name else group, first, second, np.array(gold, np.float64))
        )
    return sets
