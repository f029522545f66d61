"""The scores of a published corpus laid out for counting: prepared once, kept in the cache, mapped."""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib.format import open_memmap

from paraforge.base.errors import InputError
from paraforge.base.files import (
    cache_directory,
    hash_json,
    read_json_or_none,
    remove_directory,
    unfinished_paths,
    write_json,
)
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.pool import in_order
from paraforge.base.shards.resources import available_cores
from paraforge.corpus.publication.datasets import Dataset
from paraforge.corpus.scorer import Scale
from paraforge.corpus.selection.filters import SCORES
from paraforge.corpus.selection.filters.language import LANGUAGES
from paraforge.intake.bitext.block import REASONS
from paraforge.interface.browse.histogram import scale_of
from paraforge.interface.browse.row_groups import RowGroup, read_group, row_groups

FORMAT = 2
# Lineage is no score; the rank of a hypothesis is one where there are several.
_LINEAGE = {"line", "first_row"}
_MOST_CATEGORIES = 1 << 16
_KEPT_CORPORA = 5
_MOST_THREADS = 4
_SAMPLE = 200_000
_BLOCK = 1 << 17
NO_BIN = 255
_INFORMATION = "prepared.json"
_UNFINISHED = ".unfinished-"
_ABANDONED_SECONDS = 24 * 3600

FATE, SOURCE, FLAGS, LANGUAGE, DECILES = "fate", "source", "flags", "languages", "deciles"


@dataclass(frozen=True)
class PreparedColumns:
    """Which columns are prepared.

    scores: numeric columns that selection may bound; all are exact as 32-bit numbers.
    groups: columns of few distinct values, by the name of the group whose code stands for them together.
    """

    scores: list[str]
    groups: dict[str, list[str]]

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return list(
            dict.fromkeys([*self.scores, *(name for names in self.groups.values() for name in names)])
        )


def layout_of(schema: pa.Schema) -> PreparedColumns:
    """What of a corpus is prepared."""
    types = {field.name: field.type for field in schema}
    exact = [
        name
        for name, kind in types.items()
        if pa.types.is_float32(kind) or (pa.types.is_integer(kind) and kind.bit_width <= 32)
    ]
    groups = {
        FATE: ["rejected", "failed"],
        SOURCE: ["source"],
        FLAGS: [name for name, kind in types.items() if pa.types.is_boolean(kind)],
        LANGUAGE: list(LANGUAGES),
        DECILES: [name for name in types if name.endswith("_decile")],
    }
    present = {key: [name for name in names if name in types] for key, names in groups.items()}
    return PreparedColumns([name for name in exact if name in SCORES and name not in _LINEAGE], present)


@dataclass(frozen=True)
class PreparedCorpus:
    """Every pair's scores and group codes; rows are those of the datasets' files, one after the other.

    Mapped from disk: the system reads what a count needs and drops it when memory is short. A pair takes five
    bytes a score and two a group.

    datasets: kept pairs and, where they are there, rejected ones.
    layout: names of the rows of ``scores`` and ``groups``. scores: scores x pairs; a missing one is NaN.
    bins: scores x pairs; the bin of the score's scale, :data:`NO_BIN` of a missing one.
    groups: groups x pairs; a code is a row of the group's table. tables: the distinct values of each group.
    scales: of each score that is not the same for all pairs.
    ranges: the smallest and the largest of each of these scores.
    incomplete: scores that some pairs lack which came to selection.
    """

    datasets: list[Dataset]
    layout: PreparedColumns
    scores: npt.NDArray[np.float32]
    bins: npt.NDArray[np.uint8]
    groups: npt.NDArray[np.uint16]
    tables: dict[str, pa.Table]
    scales: dict[str, Scale]
    ranges: dict[str, tuple[float, float]]
    incomplete: frozenset[str] = frozenset()

    @property
    def pairs(self) -> int:
        """How many there are."""
        return int(self.scores.shape[1])

    @cached_property
    def files(self) -> list[tuple[Dataset, Path]]:
        """Every file, with what it belongs to."""
        return [(dataset, path) for dataset in self.datasets for path in dataset.files]

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """For each file, the number of rows up to its end."""
        return np.cumsum(_rows_of_files(self.datasets), dtype=np.int64)

    def group(self, name: str) -> npt.NDArray[np.uint16]:
        """Codes of one group."""
        return self.groups[list(self.layout.groups).index(name)]


def prepare(datasets: Sequence[Dataset], cache: Path | None = None) -> PreparedCorpus:
    """Open the corpus as it was prepared before, or prepare it; killed in between, it begins anew.

    datasets: of one publication, the kept pairs first.
    cache: where it is kept, under the hash of the manifests; see
    :func:`~paraforge.base.files.cache_directory`.

    Raises InputError: a file is damaged. Interrupted: Ctrl-C or SIGTERM.
    """
    cache = cache_directory("browse") if cache is None else cache
    schema = pa.unify_schemas([one.schema.remove_metadata() for one in datasets])
    layout = layout_of(schema)
    manifests = [one.manifest.as_dict()["sha256"] for one in datasets if one.manifest]
    directory = cache / hash_json([FORMAT, manifests, layout.columns])[:32]
    found = _open(directory, datasets, schema, layout)
    if found is None:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=cache) as temporary:
            unfinished_paths.add(Path(temporary))
            _write(datasets, schema, layout, Path(temporary) / "made")
            remove_directory(directory)
            try:
                (Path(temporary) / "made").rename(directory)
            except OSError:
                if not directory.is_dir():  # otherwise another process has just made the same
                    raise
        found = _open(directory, datasets, schema, layout)
        assert found is not None
    os.utime(directory)
    _prune(cache)
    return found


def _open(
    directory: Path, datasets: Sequence[Dataset], schema: pa.Schema, layout: PreparedColumns
) -> PreparedCorpus | None:
    """What was prepared; None where it is missing or damaged, and is to be made again."""
    information = read_json_or_none(directory / _INFORMATION)
    try:
        scores, bins, groups = (
            np.load(directory / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ("scores", "bins", "groups")
        )
    except (OSError, ValueError):
        return None
    if information is None or scores.shape[1] != sum(_rows_of_files(datasets)):
        return None
    tables = {
        name: pa.table(
            {
                column: pa.array(values, schema.field(column).type)
                for column, values in zip(columns, information["tables"][name], strict=True)
            }
        )
        for name, columns in layout.groups.items()
    }
    scales = {name: Scale(*scale) for name, scale in information["scales"].items()}
    incomplete = frozenset(information["incomplete"])
    ranges = {name: (low, high) for name, (low, high) in information["ranges"].items()}
    return PreparedCorpus(list(datasets), layout, scores, bins, groups, tables, scales, ranges, incomplete)


def _prune(cache: Path) -> None:
    """Keep the corpora that were looked at last, and nothing that a killed process left unfinished."""
    unfinished = {path for path in cache.iterdir() if path.name.startswith(".")}
    for path in unfinished:
        if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
            remove_directory(path)
    found = sorted(set(cache.iterdir()) - unfinished, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[_KEPT_CORPORA:]:
        remove_directory(path)


def _rows_of_files(datasets: Sequence[Dataset]) -> list[int]:
    return [file.rows for one in datasets if one.manifest for file in one.manifest.files]


class _Codes:
    """Codes of the distinct rows of a few columns, in the order in which they are met."""

    def __init__(self, name: str, columns: list[str]) -> None:
        self.name = name
        self.columns = columns
        self.known: dict[tuple[Any, ...], int] = {}

    def of(self, distinct: list[tuple[Any, ...]]) -> npt.NDArray[np.uint16]:
        """Codes of distinct rows."""
        codes = [self.known.setdefault(row, len(self.known)) for row in distinct]
        if len(self.known) > _MOST_CATEGORIES:
            raise InputError(f"more than {_MOST_CATEGORIES:,} different values of {', '.join(self.columns)}")
        return np.array(codes, np.uint16)

    def values(self) -> list[list[Any]]:
        """The distinct values by column."""
        return [[row[place] for row in self.known] for place in range(len(self.columns))]


def _write(datasets: Sequence[Dataset], schema: pa.Schema, layout: PreparedColumns, directory: Path) -> None:
    directory.mkdir()
    rows = _rows_of_files(datasets)
    total = sum(rows)
    shape = (len(layout.scores), total)
    scores = open_memmap(directory / "scores.npy", mode="w+", dtype=np.float32, shape=shape)
    groups = open_memmap(
        directory / "groups.npy", mode="w+", dtype=np.uint16, shape=(len(layout.groups), total)
    )
    codes = [_Codes(name, columns) for name, columns in layout.groups.items()]
    low, high = np.full(len(scores), np.inf), np.full(len(scores), -np.inf)
    incomplete: set[str] = set()
    parts = list(row_groups(datasets))
    row = 0

    def block(index: int) -> RowGroup:
        return read_group(*parts[index], layout.scores, layout.groups.values())

    with progress(total=total, unit="pairs", description="prepare") as bar:
        for read in in_order(block, len(parts), min(available_cores(), _MOST_THREADS)):
            here = slice(row, row + read.rows)
            came = _came(layout.groups[FATE], *read.groups[list(layout.groups).index(FATE)])
            for place, values in enumerate(read.scores):
                scores[place, here] = values
                if np.isnan(values[came]).any():
                    incomplete.add(layout.scores[place])
                known = values[np.isfinite(values)]
                if len(known):
                    low[place] = min(low[place], known.min())
                    high[place] = max(high[place], known.max())
            for place, (distinct, which) in enumerate(read.groups):
                groups[place, here] = codes[place].of(distinct)[which]
            row += read.rows
            bar.update(read.rows)
    integers = {field.name for field in schema if pa.types.is_integer(field.type)}
    scales = {
        name: _scale(scores[place], float(low[place]), float(high[place]), name in integers)
        for place, name in enumerate(layout.scores)
        if low[place] < high[place]
    }
    _write_bins(directory / "bins.npy", scores, [scales.get(name) for name in layout.scores])
    for array in (scores, groups):
        array.flush()
    tables = {one.name: one.values() for one in codes}
    listed = {name: [scale.low, scale.high, scale.bins] for name, scale in scales.items()}
    places = {name: layout.scores.index(name) for name in scales}
    information = {
        "scales": listed,
        "ranges": {name: [float(low[place]), float(high[place])] for name, place in places.items()},
        "tables": tables,
        "incomplete": sorted(incomplete),
    }
    write_json(directory / _INFORMATION, information)


def _came(
    columns: list[str], distinct: list[tuple[Any, ...]], which: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    """Rows that came to selection: neither rejected at ingest nor failed."""
    fates = [dict(zip(columns, row, strict=True)) for row in distinct]
    came = [fate.get("failed") is None and fate.get("rejected") not in REASONS for fate in fates]
    return np.array(came, bool)[which]


def _scale(values: npt.NDArray[np.float32], low: float, high: float, integer: bool) -> Scale:
    sample = values[:: max(1, len(values) // _SAMPLE)]
    sample = sample[np.isfinite(sample)]
    # A score that few pairs have may be missing from the sample.
    return scale_of(sample if len(sample) else np.array([low, high]), low, high, integer)


def _write_bins(path: Path, scores: npt.NDArray[np.float32], scales: list[Scale | None]) -> None:
    bins = open_memmap(path, mode="w+", dtype=np.uint8, shape=scores.shape)
    with progress(total=scores.size, unit="scores", description="bins") as bar:
        for start in range(0, scores.shape[1], _BLOCK):
            check_interrupt()
            here = slice(start, start + _BLOCK)
            for place, scale in enumerate(scales):
                values = scores[place, here]
                missing = np.isnan(values)
                known = np.where(missing, 0, values).astype(np.float64)
                bins[place, here] = (
                    NO_BIN if scale is None else np.where(missing, NO_BIN, scale.bin_of(known))
                )
            bar.update(scores[:, here].size)
    bins.flush()
