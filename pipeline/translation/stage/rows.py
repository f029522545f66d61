"""The step from rows with the number of their sentence to complete rows, with its hypotheses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.shards.schema import COLUMNS, schema_of
from paraforge.base.shards.step import Step
from paraforge.base.text.ragged import ranges
from paraforge.translation.memory.hypotheses import HYPOTHESES, HYPOTHESIS_COLUMNS
from paraforge.translation.stage.ordered_hypotheses import Hypotheses
from paraforge.translation.stage.remembering import Remembered
from paraforge.translation.stage.sentences import EngineChoice
from paraforge.versions import TRANSLATE


def rows_step(choice: EngineChoice, hypotheses: Hypotheses | None, remembered: Remembered | None) -> Step:
    """The step from ``ingested`` and ``places`` to rows with the columns of hypotheses.

    choice: engine with options and model. hypotheses: of all sentences; None where there is none.
    remembered: what translated the sentences, and how many were known, for the index; None likewise.
    """
    notes = {}
    if remembered is not None:
        notes["sentences"] = len(remembered.recalled.places)
        notes["sentences_from_memory"] = remembered.known_before
    return Step(
        name="translate",
        version=TRANSLATE,
        parameters={**choice.parameters(), "hypotheses": hypotheses.digest if hypotheses else "none"},
        fingerprints={"model": choice.weights},
        build=build_rows,
        arguments={"hypotheses": hypotheses},
        aligned=False,
        inherited=remembered.versions() if remembered else {},
        notes=notes,
    )


def build_rows(hypotheses: Hypotheses | None) -> Callable[[pa.Table], pa.Table]:
    """Gives the function from rows with ``sentence`` to complete rows."""

    def complete(table: pa.Table) -> pa.Table:
        number = table.column("sentence")
        waits = number.is_valid().to_numpy()
        wanted, own = np.unique(number.drop_null().to_numpy(), return_inverse=True)
        if hypotheses is None:
            found, counts = HYPOTHESES.empty_table(), np.empty(0, np.int64)
        else:
            found, counts = hypotheses.fetch(wanted)
        # A row that is not translated stays one row; its place in the hypotheses is void (-1).
        left, count = np.full(table.num_rows, -1), np.ones(table.num_rows, np.int64)
        left[waits], count[waits] = (np.cumsum(counts) - counts)[own], counts[own]
        rows = np.repeat(np.arange(table.num_rows), count)
        return _joined(table.drop_columns("sentence"), rows, found, ranges(left, count))

    return complete


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
