"""Finds the values at some ranks of a whole corpus with DuckDB, which sorts on disk if needed.

Rows with equal values are ranked in row order, so a place is a value and a row, and is unique.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from paraforge.base.files import remove_directory
from paraforge.base.shards.groups import run_query

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Ranked:
    """A corpus cut at some ranks.

    starts: for each shard, the number of rows in earlier shards, then their total.
    places: the requested places, ascending: a value and, among equal values, the number of a row.
    """

    starts: list[int]
    places: list[tuple[Any, int]]

    def parts(self, values: Values, shard: int) -> npt.NDArray[np.int8]:
        """Return the part of each of a shard's rows, from 1: one more than the number of places that it
        reaches."""
        found = np.ones(len(values), np.int8)
        rows = self.starts[shard] + np.arange(len(values))
        for value, row in self.places:
            found += (values > value) | ((values == value) & (rows >= row))
        return found


def rank(
    shards: Iterable[Values], ranks: Callable[[int], Sequence[int]], directory: Path, what: str
) -> Ranked:
    """Sort the values of a corpus and find the places at some ranks.

    shards: the values of each shard's rows, all of one type, without NaN; each is read once.
    ranks: function from the number of rows to ranks, from 0. A rank beyond the last row is a place that no
        row reaches.
    directory: a new one for the values and DuckDB's temporary files; removed at the end.
    what: what fails if the disk is full, for the error.
    """
    directory.mkdir(parents=True)
    path, starts = directory / "values.parquet", [0]
    writer: pq.ParquetWriter | None = None
    try:
        for values in shards:
            rows = np.arange(starts[-1], starts[-1] + len(values))
            # Adding zero turns -0.0 into 0.0.
            table = pa.table({"value": values + values.dtype.type(0), "row": rows})
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
            if len(values):
                writer.write_table(table)
            starts.append(starts[-1] + len(values))
    finally:
        if writer is not None:
            writer.close()
    last = starts[-1] - 1
    wanted = list(ranks(starts[-1])) if last >= 0 else []
    places: dict[int, tuple[Any, int]] = {}
    if wanted:
        import pyarrow.dataset as ds  # takes a while to import

        listed = ", ".join(str(min(one, last)) for one in sorted(set(wanted)))
        query = f"""
            SELECT value, row, row_number() OVER (ORDER BY value, row) - 1 AS rank FROM entries
            QUALIFY rank IN ({listed}) ORDER BY rank
        """  # noqa: S608 - whole numbers
        entries = ds.dataset([str(path)], format="parquet")
        found = pq.read_table(run_query(query, {"entries": entries}, directory / "sorted", what))
        places = {row["rank"]: (row["value"], row["row"]) for row in found.to_pylist()}
        # After the last row, so no row reaches it.
        places |= {one: (places[last][0], places[last][1] + 1) for one in wanted if one > last}
    remove_directory(directory)
    return Ranked(starts, [places[one] for one in wanted])


def tenths(shards: Iterable[Values], directory: Path, what: str) -> Ranked:
    """Cut a corpus into deciles (PN 5.4): the row at rank r of n is in decile ``1 + r * 10 // n``, so each
    decile has n / 10 rows, plus or minus one."""
    return rank(shards, lambda n: [-(-part * n // 10) for part in range(1, 10)], directory, what)
