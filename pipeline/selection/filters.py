"""Filters of a corpus: each has a score and, separately, a rule that accepts or refuses the pair by it.

A filter reads only the columns it names. Its verdict on a row is a small number: 0 accepts the row,
k > 0 refuses it for ``filter.reasons[k - 1]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
Verdicts = npt.NDArray[np.uint8]
Closed = Literal["both", "left", "right", "neither"]
MissingPolicy = Literal["refuse", "accept"]


class Filter(Protocol):
    """What refuses pairs."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why this filter may refuse a pair; the first is its name."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """Verdict on each row of shard ``shard`` that earlier filters accepted, in row order."""


def missing_reason(column: str) -> str:
    """Reason of a pair without a value in ``column``, e.g. ``no_paraphrase_score``."""
    return f"no_{column}"


@dataclass(frozen=True)
class Bounds:
    """An interval that may be open on either side; None is no bound.

    Bounds are rounded to the precision of the score, so that 0.7 as a 32-bit score is inside [0.4, 0.7]
    and outside [0.4, 0.7), as a reader expects.
    """

    minimum: float | None = None
    maximum: float | None = None
    closed: Closed = "both"

    def accept(self, values: npt.NDArray[Any]) -> Mask:
        """Whether each value is inside."""
        inside = np.ones(len(values), bool)
        if self.minimum is not None:
            minimum = _as_type_of(values, self.minimum)
            inside &= values >= minimum if self.closed in ("both", "left") else values > minimum
        if self.maximum is not None:
            maximum = _as_type_of(values, self.maximum)
            inside &= values <= maximum if self.closed in ("both", "right") else values < maximum
        return inside


def _as_type_of(values: npt.NDArray[Any], bound: float) -> Any:
    return values.dtype.type(bound) if values.dtype.kind == "f" else bound


def numbers(column: pa.ChunkedArray) -> tuple[npt.NDArray[Any], Mask]:
    """A numeric column as n numbers, and whether each is missing (null or NaN; its number is then 0)."""
    missing = (
        column.is_null(nan_is_null=True).to_numpy()
        if column.null_count or pa.types.is_floating(column.type)
        else np.zeros(len(column), bool)
    )
    if column.null_count:
        column = pc.fill_null(column, 0)
    values = column.to_numpy()
    if missing.any():
        values = np.where(missing, values.dtype.type(0), values)
    return values, missing


@dataclass(frozen=True)
class ScoreFilter:
    """Accepts a pair whose value in every one of ``columns`` is inside ``bounds``.

    The length filter is this with the token counts of both sides.
    """

    name: str
    columns: tuple[str, ...]
    bounds: Bounds = field(default_factory=Bounds)
    missing: MissingPolicy = "refuse"

    @property
    def reasons(self) -> tuple[str, ...]:
        """The filter's name, and one for a missing value in each column."""
        return (self.name, *(missing_reason(column) for column in self.columns))

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`Filter`."""
        verdicts = np.zeros(rows.num_rows, np.uint8)
        for place, column in enumerate(self.columns):
            values, missing = numbers(rows.column(column))
            refused = ~self.bounds.accept(values) & ~missing
            verdicts[(verdicts == 0) & refused] = 1
            if self.missing == "refuse":
                verdicts[(verdicts < 2) & missing] = 2 + place
        return verdicts


@dataclass(frozen=True)
class CategoryFilter:
    """Accepts a pair whose value in every one of ``columns`` is one of ``accepted``: the language filter."""

    name: str
    columns: tuple[str, ...]
    accepted: tuple[str, ...]
    missing: MissingPolicy = "accept"

    @property
    def reasons(self) -> tuple[str, ...]:
        """The filter's name, and one for a missing value in each column."""
        return (self.name, *(missing_reason(column) for column in self.columns))

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`Filter`."""
        verdicts = np.zeros(rows.num_rows, np.uint8)
        accepted = pa.array(self.accepted, pa.string())
        for place, column in enumerate(self.columns):
            values = rows.column(column)
            missing = values.is_null().to_numpy()
            refused = ~pc.is_in(values, value_set=accepted).to_numpy() & ~missing
            verdicts[(verdicts == 0) & refused] = 1
            if self.missing == "refuse":
                verdicts[(verdicts < 2) & missing] = 2 + place
        return verdicts


@dataclass(frozen=True)
class FlagFilter:
    """Refuses a pair whose flag ``column`` equals ``refused``; a missing flag is False."""

    name: str
    column: str
    refused: bool = True

    @property
    def reasons(self) -> tuple[str, ...]:
        """The filter's name."""
        return (self.name,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The flag."""
        return (self.column,)

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`Filter`."""
        flags = pc.fill_null(rows.column(self.column), False).to_numpy()
        return (flags == self.refused).astype(np.uint8)


def decile_column(score: str) -> str:
    """Name of the column with the tenth that a pair is in by ``score``."""
    return f"{score}_decile"


@dataclass(frozen=True)
class DecileFilter:
    """Accepts the pairs in the tenths ``keep`` of the corpus by ``score``; 10 is the highest."""

    name: str
    score: str
    keep: tuple[int, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The filter's name, and one for a pair without the score."""
        return (self.name, missing_reason(self.score))

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of tenths, which selection adds to what it reads."""
        return (decile_column(self.score),)

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`Filter`."""
        tenths, missing = numbers(rows.column(decile_column(self.score)))
        verdicts = (~np.isin(tenths, self.keep)).astype(np.uint8)
        verdicts[missing] = 2
        return verdicts


TEXT_COLUMNS = frozenset({"source_text", "reference", "translation"})


def apply_filters(
    filters: Sequence[Filter], rows: pa.Table, alive: Mask, shard: int, first_code: int
) -> npt.NDArray[np.uint16]:
    """Let filters judge the rows that are alive, each only those that the ones before it accepted.

    Args:
        filters: in the order of judging.
        rows: n rows with the columns that the filters read.
        alive: n flags; rows that are not alive are not judged.
        shard: number of the shard.
        first_code: code of the first filter's first reason.

    Returns:
        n codes: 0 where the row is accepted or was not alive, otherwise the code of the reason. Codes number
        the filters' reasons in order.
    """
    codes = np.zeros(rows.num_rows, np.uint16)
    standing = alive.copy()
    code = first_code
    for one in filters:
        judged = rows.select(list(dict.fromkeys(one.columns)))
        everything = bool(standing.all())
        verdicts = one.verdicts(judged if everything else judged.filter(pa.array(standing)), shard)
        places = np.flatnonzero(standing)
        refused = verdicts > 0
        codes[places[refused]] = code + verdicts[refused] - 1
        standing[places[refused]] = False
        code += len(one.reasons)
    return codes
