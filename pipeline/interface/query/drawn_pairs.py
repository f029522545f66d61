"""Pairs drawn at random from a published corpus, without reading all of its text."""

# ruff: noqa: S608 - names are quoted, and the user's condition is checked; nothing else goes into a statement
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import Dataset
from paraforge.interface.query.database import fetch, identifier, open_database, rows_of

if TYPE_CHECKING:
    import duckdb

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)"
_ROUNDING = 1e-5
_BAND = re.compile(rf"\s*({_NUMBER})\s*(?:-|\.\.|,|:)\s*({_NUMBER})\s*")


@dataclass(frozen=True)
class Band:
    """Scores above ``low`` and not above ``high``, as ParaNMT's bands are; compared in single precision.

    Rounding may lift the cosine of two equal averages just over 1: a band that ends in 1 has them too.
    """

    low: float
    high: float

    def condition(self, column: str) -> str:
        """The band in SQL."""
        name = identifier(column)
        high = 1 + _ROUNDING if self.high == 1 else self.high
        return f"{name} > CAST({self.low!r} AS FLOAT) AND {name} <= CAST({high!r} AS FLOAT)"


def parse_band(text: str) -> Band:
    """Read ``0.6-0.8``, ``-0.1-0.2`` or ``0.6..0.8``. Raises InputError: not two numbers, or the first is not
    the smaller one."""
    match = _BAND.fullmatch(text)
    if match is None:
        raise InputError(f"'{text}' is no band", remedy="Write it as 0.6-0.8.")
    low, high = float(match[1]), float(match[2])
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"'{text}' is no band: it is empty", remedy="Write the lower end first: 0.6-0.8.")
    return Band(low, high)


@dataclass(frozen=True)
class Sample:
    """Pairs drawn, in the corpus' order, and how many they were drawn from."""

    pairs: pa.Table
    population: int


def sample_pairs(
    dataset: Dataset,
    count: int,
    seed: int,
    band: Band | None = None,
    score: str = "paraphrase_score",
    where: str | None = None,
    columns: Sequence[str] | None = None,
) -> Sample:
    """Draw ``count`` pairs uniformly without replacement.

    The condition's columns are read whole, the text only of the files that have a drawn pair. The same
    corpus, condition and seed give the same pairs.

    dataset: see :func:`paraforge.corpus.publication.datasets.open_published`.
    count: pairs wanted; all of them where there are fewer. band: bounds of ``score``.
    where: a condition in SQL on the dataset's columns. columns: columns wanted; all by default.

    Raises InputError: no such column, or the condition is wrong.
    """
    conditions = [band.condition(score)] if band else []
    for name in [*([score] if band else []), *(columns or ())]:
        if name not in dataset.schema.names:
            raise InputError(
                f"no column '{name}'", dataset.directory, remedy=f"It has {', '.join(dataset.schema.names)}."
            )
    if where:
        conditions.append(f"({where}\n)")
    condition = " AND ".join(conditions) or "true"
    wanted = list(columns) if columns else dataset.schema.names
    with open_database([dataset]) as connection:
        if where:
            check_condition(connection, dataset.name, where)
        matching = _matching_rows(connection, dataset, condition)
        population = sum(matching)
        drawn = np.sort(
            np.random.default_rng(seed).choice(population, min(count, population), replace=False)
            if population
            else np.zeros(0, np.int64)
        )
        select, in_order = f"SELECT {', '.join(map(identifier, wanted))} FROM", "ORDER BY file_row_number"
        tables = []
        ends = np.cumsum(matching)
        for index in np.unique(np.searchsorted(ends, drawn, side="right")).tolist():
            begin = int(ends[index]) - matching[index]
            places = drawn[(drawn >= begin) & (drawn < ends[index])] - begin
            file = rows_of([dataset.files[index]], "file_row_number = true")
            rows = fetch(connection, f"SELECT file_row_number FROM {file} WHERE {condition} {in_order}")
            numbers = ", ".join(map(str, rows["file_row_number"].to_numpy()[places].tolist()))
            tables.append(
                fetch(connection, f"{select} {file} WHERE file_row_number IN ({numbers}) {in_order}")
            )
        if not tables:
            tables = [fetch(connection, f"{select} {identifier(dataset.name)} LIMIT 0")]
    return Sample(pa.concat_tables(tables), population)


def check_condition(connection: duckdb.DuckDBPyConnection, view: str, where: str) -> None:
    """Make sure that the condition is one, and does not end the statement and begin another. Raises
    InputError: it is not, or names a column that the view lacks."""
    from paraforge.interface.query.database import explained

    sql = f"SELECT 1 FROM {identifier(view)} WHERE ({where}\n) LIMIT 0"
    with explained():
        statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise InputError(f"'{where}' is not one condition")
    fetch(connection, sql)


def _matching_rows(connection: duckdb.DuckDBPyConnection, dataset: Dataset, condition: str) -> list[int]:
    if not dataset.files:
        return []
    counts = fetch(
        connection,
        "SELECT filename, count(*) AS pairs "
        f"FROM {rows_of(dataset.files, 'filename = true')} "
        f"WHERE {condition} GROUP BY filename",
    )
    by_file = dict(zip(counts["filename"].to_pylist(), counts["pairs"].to_pylist(), strict=True))
    return [int(by_file.get(str(path), 0)) for path in dataset.files]
