"""The pairs that people grade: N from each band of the paraphrase score, drawn with a seed."""

# ruff: noqa: S608 - names and paths are quoted
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import Dataset, open_publication
from paraforge.corpus.statistics.counts import BAND_EDGES, BANDS, Moments
from paraforge.interface.query.database import fetch, open_database, rows_at, rows_of

if TYPE_CHECKING:
    import duckdb

PAIRS_PER_BAND = 100
SEED = 1
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

    The pairs with the smallest hashes of lineage and seed are drawn: the same corpus and seed give the same
    pairs, however the corpus is cut into files.

    datasets: see :func:`open_for_annotation`. corpus: the directory as the user gave it.
    per_band: at least 1.

    Raises InputError if no pair is in any band, or a file is damaged.
    """
    if per_band < 1:
        raise ValueError("a sample needs at least one pair per band")
    parts = [
        f"SELECT {_columns(one)}, filename AS file, file_row_number AS row "
        f"FROM {rows_of(one.files, 'filename = true', 'file_row_number = true')}"
        for one in datasets
        if one.files
    ]
    if not parts:
        raise InputError("the corpus has no pairs: there is nothing to grade", corpus)
    with open_database([]) as connection:
        found = fetch(
            connection,
            f"SELECT {_band('paraphrase_score')} AS band, count(*) AS pairs, count(overlap_3) AS overlaps, "
            "coalesce(sum(overlap_3::DOUBLE), 0) AS total, "
            "coalesce(sum(overlap_3::DOUBLE * overlap_3::DOUBLE), 0) AS squares, "
            "arg_min(struct_pack(file, row), "
            f"md5_number_lower(concat_ws(chr(0), source, line, rank, {seed})), {per_band}) AS places "
            f"FROM ({' UNION ALL '.join(parts)}) GROUP BY band HAVING band IS NOT NULL ORDER BY band",
        ).to_pylist()
        if not found:
            message = "no pair has a paraphrase score within (-0.1, 1.0]: there is nothing to grade"
            raise InputError(message, corpus)
        places = [(band["band"], place["file"], place["row"]) for band in found for place in band["places"]]
        texts = _read(connection, datasets, places)
    bands = [BandFigures() for _ in BANDS]
    for band in found:
        moments = Moments(band["overlaps"], band["total"], band["squares"])
        bands[band["band"]] = BandFigures(band["pairs"], moments)
    pairs = [DrawnPair(band=band, **texts[file, row]) for band, file, row in places]
    return Draw(origin_of(datasets, corpus), seed, per_band, bands, pairs)


def _columns(dataset: Dataset) -> str:
    """Select what a pair needs; a column that the dataset lacks is NULL, and the rank 0."""
    known = {name: name if name in dataset.schema.names else "NULL" for name in _SHOWN}
    known["rank"] = f"coalesce({known['rank']}, 0)"
    known["overlap_3"] = f"nullif({known['overlap_3']}::FLOAT, 'nan'::FLOAT)"
    return ", ".join(f"{value} AS {name}" for name, value in known.items())


def _band(score: str) -> str:
    """Give the number of a score's band in SQL; rounding may lift the cosine of equal averages over 1."""
    edges = [f"'{edge}'::FLOAT" for edge in BAND_EDGES]
    cases = [f"WHEN least({score}, 1) <= {high} THEN {band}" for band, high in enumerate(edges[1:])]
    none = f"{score} IS NULL OR isnan({score}) OR {score} <= {edges[0]}"
    return f"CASE WHEN {none} THEN NULL {' '.join(cases)} END"


def _read(
    connection: duckdb.DuckDBPyConnection, datasets: Sequence[Dataset], places: list[tuple[int, str, int]]
) -> dict[tuple[str, int], dict[str, Any]]:
    """Read single rows, by file and row of the file."""
    texts = {}
    for dataset in datasets:
        for path in dataset.files:
            rows = [row for _, file, row in places if file == str(path)]
            if rows:
                sql = rows_at(path, rows, f"{_columns(dataset)}, file_row_number AS row")
                for pair in fetch(connection, sql).to_pylist():
                    texts[str(path), pair.pop("row")] = pair
    return texts
