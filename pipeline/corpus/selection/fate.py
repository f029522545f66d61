"""The fate of each row: kept, rejected for a reason, or failed for a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import IncompleteError
from paraforge.base.shards.schema import FATE_COLUMNS, alive_rows


@dataclass
class Counts:
    """Counts of rows: input, kept, rejected and failed, the latter two by reason."""

    rows_in: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add the counts of ``other``."""
        self.rows_in += other.rows_in
        self.kept += other.kept
        self.rejected.update(other.rejected)
        self.failed.update(other.failed)

    @property
    def left_out(self) -> int:
        """The number of rejected or failed rows."""
        return self.rejected.total() + self.failed.total()

    def check(self, what: str) -> None:
        """Check that every row is accounted for. Raises IncompleteError if input rows are not kept + rejected
        + failed."""
        if self.rows_in != self.kept + self.left_out:
            raise IncompleteError(
                f"{what}: {self.rows_in:,} rows in, but {self.kept:,} kept "
                f"+ {self.rejected.total():,} rejected "
                f"+ {self.failed.total():,} failed = {self.kept + self.left_out:,}"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON value, with reasons by descending count."""
        return {
            "rows_in": self.rows_in,
            "kept": self.kept,
            "rejected": _rank(self.rejected),
            "failed": _rank(self.failed),
        }


def add_counts(to: dict[str, Counts], others: Mapping[str, Counts]) -> None:
    """Add other counts, name by name."""
    for name, counts in others.items():
        to.setdefault(name, Counts()).add(counts)


def total_of(named: Mapping[str, Counts]) -> Counts:
    """Return the counts of all names together."""
    total = Counts()
    for counts in named.values():
        total.add(counts)
    return total


def _rank(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def kept_mask(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which rows are kept: neither rejected nor failed."""
    return np.asarray(alive_rows(rows))


def fate_of(codes: npt.NDArray[np.integer], reasons: Sequence[str], rejected: pa.ChunkedArray | None) -> Any:
    """Return the column ``rejected`` of n rows, a string array: the earlier reason, or the filter's.

    codes: see :func:`paraforge.corpus.selection.filters.apply_filters`. reasons: names of the codes from 1.
    rejected: the earlier column, None for none.
    """
    chosen = pa.array(codes.astype(np.int32) - 1, mask=codes == 0)
    reason = pa.DictionaryArray.from_arrays(chosen, pa.array(reasons, pa.string())).cast(pa.string())
    return reason if rejected is None else pc.coalesce(rejected.cast(pa.string()), reason)


def count_by(rows: pa.Table, column: str | None) -> dict[Any, Counts]:
    """Count the rows with each value of a column by ``rejected`` and ``failed``; None for all rows together.

    Raises IncompleteError if a row is both rejected and failed, so it would be counted twice.
    """
    counts_of: dict[Any, Counts] = {}
    names = [name for name in (column, *FATE_COLUMNS) if name in rows.column_names]
    groups = rows.group_by(names, use_threads=False).aggregate([([], "count_all")])
    for group in groups.to_pylist():
        number, (rejected, failed) = group["count_all"], (group.get(name) for name in FATE_COLUMNS)
        counts = counts_of.setdefault(group.get(column), Counts())
        counts.rows_in += number
        counts.rejected.update({rejected: number} if rejected is not None else {})
        counts.failed.update({failed: number} if failed is not None else {})
        counts.kept += number if rejected is None and failed is None else 0
    for counts in counts_of.values():
        counts.check("a shard")
    return counts_of
