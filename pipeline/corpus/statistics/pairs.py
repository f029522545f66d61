"""The pairs of a shard that have a translation, and keys that draw some of them at random."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.shards.job_files import JobFiles
from paraforge.base.shards.schema import FATE_COLUMNS, alive_rows
from paraforge.base.shards.store import ShardDirectory, ShardView, read_aligned, read_parquet, read_schema

Keys = npt.NDArray[np.uint64]
Paths = tuple[tuple[Path, ...], Path | None]


def files_of(shards: Sequence[Paths]) -> list[JobFiles]:
    """What a job on each shard reads."""
    return [JobFiles(read=(*paths, *([] if chosen is None else [chosen]))) for paths, chosen in shards]


def shard_paths(view: ShardView, selected: Path | None) -> list[Paths]:
    """The files of each shard, and its file in data/selected."""
    chosen: list[Path | None] = [None] * len(view)
    if selected is not None:
        directory = ShardDirectory(selected)
        if directory.rows != view.rows:
            raise InputError(
                "its shards are not aligned with the corpus", selected, remedy="Run 'dvc repro'."
            )
        chosen = list(directory.paths)
    files = [tuple(path.resolve() for path in view.shard_paths(index)) for index in range(len(view))]
    return [(paths, None if one is None else one.resolve()) for paths, one in zip(files, chosen, strict=True)]


_FATE = (*FATE_COLUMNS, "rank")


@lru_cache(maxsize=64)
def schema_names(path: Path) -> tuple[str, ...]:
    """Columns of a Parquet file. Raises InputError: it cannot be read."""
    return tuple(read_schema(path).names)


def read_pairs(paths: Paths, columns: Iterable[str]) -> pa.Table:
    """The rows of a shard that have a translation; ``columns`` that the shard does not have are left out."""
    files, selected = paths
    there = {name for path in files for name in schema_names(path)}
    wanted = [name for name in dict.fromkeys(columns) if name in there]
    table = read_aligned(files, [*wanted, *(name for name in _FATE if name in there and name not in wanted)])
    keep = alive_rows(table)
    if "rank" in there:
        keep = pc.and_(keep, pc.equal(pc.fill_null(table["rank"], 0), 0))
    table = table.select(wanted)
    if selected is not None:
        deciles = read_parquet(selected)
        for name in deciles.column_names:
            if name.endswith("_decile"):
                table = table.append_column(name, deciles[name])
    return table.filter(keep)


def smallest(keys: Keys, size: int | None) -> Keys:
    if size is None or len(keys) <= size:
        return keys
    return np.partition(keys, size - 1)[:size]


def limit_of(keys: Keys, size: int | None) -> int:
    """The largest key of a sample of ``size`` rows; ``keys`` has the smallest ``size`` of them at least."""
    chosen = smallest(keys, size)
    return int(chosen.max()) if len(chosen) else 0
