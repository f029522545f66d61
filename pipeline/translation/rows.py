"""The step from rows with the number of their sentence to complete rows, with its hypotheses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.errors import IncompleteError
from paraforge.shards.schema import COLUMNS, schema_of
from paraforge.shards.step import Step
from paraforge.shards.store import ShardDirectory
from paraforge.translation.distinct import DistinctSentences
from paraforge.translation.donors import Donors, ranges
from paraforge.translation.sentences import (
    HYPOTHESES,
    HYPOTHESIS_COLUMNS,
    EngineChoice,
)
from paraforge.versions import TRANSLATE


def rows_step(
    choice: EngineChoice,
    distinct: DistinctSentences,
    hypotheses: Path,
    donors: Donors,
    digest: str,
    versions: dict[str, list[str]],
) -> Step:
    """The step from ``ingested`` and ``distinct.places`` to rows with the columns of hypotheses."""
    return Step(
        name="translate",
        version=TRANSLATE,
        parameters={**choice.parameters(), "hypotheses": digest},
        fingerprints={"model": choice.weights},
        build=build_rows,
        arguments={"distinct": distinct, "hypotheses": hypotheses, "donors": donors},
        aligned=False,
        inherited=versions,
    )


def build_rows(
    distinct: DistinctSentences, hypotheses: Path, donors: Donors
) -> Callable[[pa.Table], pa.Table]:
    """Gives the function from rows with ``sentence`` and ``here`` to complete rows."""

    def complete(table: pa.Table) -> pa.Table:
        number = table.column("sentence")
        found = _hypotheses_of(table, distinct, hypotheses, donors)
        known = found.column("sentence").to_numpy()
        waits = pc.is_valid(number).combine_chunks().to_numpy(zero_copy_only=False)
        wanted = pc.fill_null(number, -1).to_numpy()
        left = np.searchsorted(known, wanted, "left")
        counts = np.searchsorted(known, wanted, "right") - left
        if (counts[waits] == 0).any():
            raise IncompleteError(f"{int((counts[waits] == 0).sum())} rows have no result of their sentence")
        # A row that is not translated stays one row; its place in the hypotheses is void (-1).
        counts[~waits] = 1
        rows = np.repeat(np.arange(table.num_rows), counts)
        places = ranges(np.where(waits, left, -1), counts)
        return _joined(table.drop_columns(["sentence", "here"]), rows, found, places)

    return complete


def _hypotheses_of(
    table: pa.Table, distinct: DistinctSentences, hypotheses: Path, donors: Donors
) -> pa.Table:
    """Hypotheses of all sentences of the rows, and of some more, sorted by sentence."""
    number, here = table.column("sentence"), table.column("here")
    waits = pc.is_valid(number)
    outside = number.filter(pc.and_(waits, pc.invert(here))).to_numpy()
    inside = number.filter(here).to_numpy()
    # Sentences of earlier shards have lower numbers than those that begin here, so the whole stays sorted.
    tables = [donors.fetch(np.unique(outside), HYPOTHESES)]
    if len(inside):
        directory = ShardDirectory(hypotheses)
        size = distinct.sentences_per_task
        for index in range(int(inside.min()) // size, int(inside.max()) // size + 1):
            shard = directory.read(index)
            numbers = shard.column("sentence").to_numpy()
            # The first shard may begin with sentences of an earlier shard of rows, donors perhaps.
            tables.append(shard.filter(pa.array(numbers >= inside.min())).cast(HYPOTHESES))
    return pa.concat_tables(tables).combine_chunks()


def _joined(base: pa.Table, rows: NDArray[np.int64], found: pa.Table, places: NDArray[np.int64]) -> pa.Table:
    repeated = base if len(rows) == base.num_rows else base.take(pa.array(rows))
    voids = places < 0
    taken = found.take(pa.array(places, mask=voids))
    void = pa.array(voids)
    columns: dict[str, Any] = {name: repeated.column(name) for name in repeated.column_names}
    for name in HYPOTHESIS_COLUMNS:
        column = taken.column(name)
        if name in ("translation", "translation_score"):
            if name in columns:  # a row that came with a translation keeps it
                column = pc.if_else(void, columns[name], column)
        elif name != "failed":
            column = pc.fill_null(column, 0 if name == "rank" else False)
        columns[name] = column.cast(COLUMNS[name].type)
    order = [name for name in COLUMNS if name in columns]
    extra = [repeated.schema.field(name) for name in columns if name not in COLUMNS]
    schema = schema_of(order, extra)
    return pa.table([columns[name] for name in schema.names], schema=schema)
