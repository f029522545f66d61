"""The pairs that people grade: N from each band of the paraphrase score, drawn with a seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.lineage import LINEAGE, sampling_keys
from paraforge.corpus.publication.datasets import Dataset, open_file, open_publication
from paraforge.corpus.selection.filters import numbers
from paraforge.corpus.statistics.counts import BANDS, Moments, band_of

PAIRS_PER_BAND = 100
SEED = 1
_BATCH_ROWS = 1 << 17
_SCORES = ("paraphrase_score", "overlap_3")
_NEEDED = ("source", "line", "reference", "translation", "paraphrase_score")
_SHOWN = (*_NEEDED, "rank", "overlap_3", "rejected")


@dataclass(frozen=True)
class DrawnPair:
    """One pair to grade.

    band: 0 .. 4, see :data:`paraforge.corpus.publication.statistics.BANDS`.
    rejected: the filter that rejected the pair, None of a kept one.
    """

    band: int
    source: str
    line: int
    rank: int
    rejected: str | None
    reference: str
    translation: str
    paraphrase_score: float
    overlap_3: float | None


@dataclass
class BandFigures:
    """What a band has: the number of its pairs, and the moments of their trigram overlap in [0, 1]."""

    pairs: int = 0
    overlap: Moments = field(default_factory=Moments)


@dataclass(frozen=True)
class Origin:
    """What a sample was drawn from.

    corpus: directory, as it was given. name, signature: of the corpus.
    manifests: SHA-256 of each manifest, by content (``corpus``, ``rejected``).
    """

    corpus: str
    name: str
    signature: str
    manifests: dict[str, str]


@dataclass(frozen=True)
class Draw:
    """A stratified sample: pairs by band and, within it, by sampling key."""

    origin: Origin
    seed: int
    per_band: int
    bands: list[BandFigures]
    pairs: list[DrawnPair]


@dataclass
class _Candidates:
    """The rows with the smallest keys of one band so far: key, file and row within the file."""

    keys: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    files: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, keys: npt.NDArray[np.uint64], file: int, rows: npt.NDArray[np.int64], most: int) -> None:
        """Take rows of a file in, and keep the ``most`` smallest keys."""
        merged = np.concatenate([self.keys, keys])
        order = np.argsort(merged, kind="stable")[:most]
        self.keys = merged[order]
        self.files = np.concatenate([self.files, np.full(len(keys), file)])[order]
        self.rows = np.concatenate([self.rows, rows])[order]


def open_for_annotation(directory: Path, with_rejected: bool = True) -> list[Dataset]:
    """The published corpus in ``directory`` and, by default, the rejected pairs next to it.

    Low bands of the score are mostly in ``data/rejected``: without it, they are empty. One of another run is
    not taken. Raises InputError: not a published corpus, damaged, or without scores.
    """
    datasets = open_publication(directory, with_rejected)
    for one in datasets:
        missing = [name for name in _NEEDED if name not in one.schema.names]
        if missing:
            raise InputError(
                f"no column {', '.join(missing)}",
                one.directory,
                remedy="Run 'dvc repro' to score the corpus.",
            )
    return datasets


def origin_of(datasets: Sequence[Dataset], corpus: Path) -> Origin:
    """What identifies the datasets that a sample is drawn from."""
    manifests = {one.name: one.manifest.as_dict() for one in datasets if one.manifest}
    first = next(iter(manifests.values()))
    digests = {name: str(manifest["sha256"]) for name, manifest in manifests.items()}
    return Origin(str(corpus), str(first["name"]), str(first["signature"]), digests)


def draw_pairs(datasets: Sequence[Dataset], corpus: Path, per_band: int, seed: int) -> Draw:
    """Draw ``per_band`` pairs of each band uniformly without replacement; all where a band has no more.

    Scores and lineage are read batch by batch, text only of the row groups that have a drawn pair. The same
    corpus and seed give the same pairs, however the corpus is cut into files.

    datasets: see :func:`open_for_annotation`. corpus: the directory as the user gave it.
    per_band: at least 1.

    Raises InputError: no pair is in any band, or a file is damaged.
    """
    if per_band < 1:
        raise ValueError("a sample has at least one pair a band")
    files = [(dataset, path) for dataset in datasets for path in dataset.files]
    bands = [BandFigures() for _ in BANDS]
    candidates = [_Candidates() for _ in BANDS]
    total = sum(dataset.rows for dataset in datasets)
    with progress(total=total, unit="pairs", description="draw") as bar:
        for number, (dataset, path) in enumerate(files):
            wanted = [name for name in (*LINEAGE, *_SCORES) if name in dataset.schema.names]
            start = 0
            for batch in _batches(path, wanted):
                check_interrupt()
                _scan(batch, number, start, seed, per_band, bands, candidates)
                start += batch.num_rows
                bar.update(batch.num_rows)
    if not any(band.pairs for band in bands):
        raise InputError(
            "no pair has a paraphrase score within (-0.1, 1.0]: there is nothing to grade", corpus
        )
    texts: dict[tuple[int, int], dict[str, Any]] = {}
    for number, (dataset, path) in enumerate(files):
        chosen = np.concatenate([band.rows[band.files == number] for band in candidates])
        wanted = [name for name in _SHOWN if name in dataset.schema.names]
        texts.update({(number, row): pair for row, pair in _rows(path, np.sort(chosen), wanted)})
    pairs = [
        _pair(index, texts[file, row])
        for index, band in enumerate(candidates)
        for file, row in zip(band.files.tolist(), band.rows.tolist(), strict=True)
    ]
    return Draw(origin_of(datasets, corpus), seed, per_band, bands, pairs)


def _batches(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    with open_file(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
            yield pa.Table.from_batches([batch])


def _scan(
    table: pa.Table,
    file: int,
    start: int,
    seed: int,
    per_band: int,
    bands: list[BandFigures],
    candidates: list[_Candidates],
) -> None:
    scores, unknown = numbers(table["paraphrase_score"])
    band_numbers = np.where(unknown, -1, band_of(np.where(unknown, 0, scores)))
    if "overlap_3" in table.column_names:
        overlaps, no_overlap = numbers(table["overlap_3"])
    else:
        overlaps, no_overlap = np.zeros(table.num_rows), np.ones(table.num_rows, bool)
    keys = sampling_keys(table, seed)
    for index, (figures, chosen) in enumerate(zip(bands, candidates, strict=True)):
        rows = np.flatnonzero(band_numbers == index)
        known = overlaps[rows[~no_overlap[rows]]].astype(np.float64)
        figures.pairs += len(rows)
        figures.overlap.add(Moments.of(known))
        chosen.add(keys[rows], file, rows + start, per_band)


def _rows(
    path: Path, rows: npt.NDArray[np.int64], columns: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read single rows of a file: ``rows`` sorted."""
    if not len(rows):
        return
    with open_file(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        groups = np.searchsorted(ends, rows, side="right")
        for group in np.unique(groups).tolist():
            here = rows[groups == group]
            begin = int(ends[group]) - sizes[group]
            table = file.read_row_group(group, columns=list(columns), use_threads=False)
            yield from zip(here.tolist(), table.take(here - begin).to_pylist(), strict=True)


def _pair(band: int, row: dict[str, Any]) -> DrawnPair:
    values = {name: row.get(name) for name in _SHOWN}
    return DrawnPair(band=band, **values | {"rank": values["rank"] or 0})
