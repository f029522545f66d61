"""Rows of fields as sets of scored sentence pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paraforge.base.errors import InputError
from paraforge.base.text.fields import Row, finite_number
from paraforge.embeddings.evaluation.sets.sentence_pairs import SentencePairs

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
