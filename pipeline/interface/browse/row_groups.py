"""Reads a published corpus by row groups: scores as floats, and rows of a few columns as codes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import PUBLISH_AGAIN, Dataset, open_file
from paraforge.corpus.selection.filters import numbers


@dataclass(frozen=True)
class RowGroup:
    """Scores, and for each group of columns the distinct rows and which of them each row is."""

    rows: int
    scores: list[npt.NDArray[np.float32]]
    groups: list[tuple[list[tuple[Any, ...]], npt.NDArray[np.intp]]]


def row_groups(datasets: Sequence[Dataset]) -> Iterator[tuple[Dataset, Path, int]]:
    """Every row group of every file: what is read at a time."""
    for dataset in datasets:
        for listed, path in zip(
            dataset.manifest.files if dataset.manifest else [], dataset.files, strict=True
        ):
            with open_file(path) as file:
                if file.metadata.num_rows != listed.rows:
                    raise InputError(
                        f"damaged: it has {file.metadata.num_rows:,} rows, the manifest says {listed.rows:,}",
                        path,
                        remedy=PUBLISH_AGAIN,
                    )
                groups = file.num_row_groups
            yield from ((dataset, path, group) for group in range(groups))


def read_group(
    dataset: Dataset, path: Path, group: int, scores: Sequence[str], groups: Iterable[Sequence[str]]
) -> RowGroup:
    """Read one row group. Columns that the dataset does not have are missing in every row."""
    among = [list(names) for names in groups]
    names = dict.fromkeys([*scores, *(name for one in among for name in one)])
    wanted = [name for name in names if name in dataset.schema.names]
    with open_file(path) as file:
        table = file.read_row_group(group, columns=wanted, use_threads=False)
    nothing = pa.chunked_array([pa.nulls(table.num_rows)])
    absent = np.full(table.num_rows, np.nan, np.float32)
    values = [_floats(table[name]) if name in wanted else absent for name in scores]
    codes = [
        _distinct([table[name] if name in wanted else nothing for name in one], table.num_rows)
        for one in among
    ]
    return RowGroup(table.num_rows, values, codes)


def _floats(column: pa.ChunkedArray) -> npt.NDArray[np.float32]:
    values, missing = numbers(column)
    found = values.astype(np.float32)
    if missing.any():
        found[missing] = np.nan
    return found


def _distinct(
    columns: list[pa.ChunkedArray], rows: int
) -> tuple[list[tuple[Any, ...]], npt.NDArray[np.intp]]:
    """The distinct rows of a few columns, and which of them each row is."""
    code = np.zeros(rows, np.int64)
    values: list[tuple[Any, ...]] = [()]
    for column in columns:
        chunk = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
        known = chunk.dictionary.to_pylist()
        code = code * len(known) + chunk.indices.to_numpy(zero_copy_only=False)
        values = [(*row, value) for row in values for value in known]
        present = np.flatnonzero(np.bincount(code, minlength=len(values)))
        place = np.zeros(len(values), np.int64)
        place[present] = np.arange(len(present))
        code, values = place[code], [values[index] for index in present.tolist()]
    return values, code
