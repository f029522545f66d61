"""The pairs that people grade: N from each band of the paraphrase score, drawn with a seed."""

# ruff: noqa: S608 - names and paths are quoted
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import Dataset, open_publication
from paraforge.corpus.statistics.counts import BAND_EDGES, BANDS
from paraforge.interface.query.database import draw_key, fetch, open_database, rows_at, rows_of

PAIRS_PER_BAND = 100
SEED = 1
_NEEDED = ("source", "line", "reference", "translation", "paraphrase_score")
# Columns that a corpus may lack.
_OPTIONAL = "SELECT NULL::TINYINT AS rank, NULL::VARCHAR AS rejected, NULL::FLOAT AS overlap_3 WHERE false"


@dataclass(frozen=True)
class DrawnPair:
    """One pair to grade.

    band: 0 .. 4, see :data:`paraforge.corpus.statistics.counts.BANDS`.
    rejected: the filter that rejected the pair; None for a kept pair.
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


@dataclass(frozen=True)
class BandFigures:
    """The number of pairs in a band, and their trigram overlap in [0, 1]."""

    pairs: int = 0
    overlap_3_mean: float | None = None
    overlap_3_sd: float | None = None


@dataclass(frozen=True)
class Draw:
    """A stratified sample: pairs by band and, within it, by sampling key.

    name, signature: name and signature of the corpus. manifests: SHA-256 of each dataset's manifest, by name.
    """

    name: str
    signature: str
    manifests: dict[str, str]
    seed: int
    per_band: int
    bands: list[BandFigures]
    pairs: list[DrawnPair]


def open_for_annotation(directory: Path, with_rejected: bool = True) -> list[Dataset]:
    """Open a published corpus and, by default, the rejected pairs next to it.

    Low bands of the score are mostly in ``data/rejected``; without it, they are empty. Raises InputError if
    it is not a published corpus, damaged, without scores, or the rejected pairs are from another run.
    """
    datasets = open_publication(directory, with_rejected)
    for one in datasets:
        if missing := [name for name in _NEEDED if name not in one.schema.names]:
            remedy = "Run 'dvc repro' to score the corpus."
            raise InputError(f"no column {', '.join(missing)}", one.directory, remedy=remedy)
    return datasets


def manifests_of(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Return what identifies the datasets that a sample is drawn from."""
    return {one.name: str(one.manifest.as_dict()["sha256"]) for one in datasets if one.manifest}


def draw_pairs(datasets: Sequence[Dataset], per_band: int, seed: int) -> Draw:
    """Draw ``per_band`` pairs from each band uniformly without replacement, or all if a band has fewer.

    The pairs with the smallest hashes of lineage and seed are drawn: the same corpus and seed give the same
    pairs, however the corpus is cut into files.

    datasets: see :func:`open_for_annotation`. per_band: at least 1.

    Raises InputError if no pair is in any band, or a file is damaged.
    """
    parts = [
        f"SELECT * FROM {rows_of(one.files, 'filename = true', 'file_row_number = true')}"
        for one in datasets
        if one.files
    ]
    if not parts:
        raise InputError("the corpus has no pairs: there is nothing to grade", datasets[0].directory)
    with open_database() as connection:
        found = fetch(
            connection,
            "SELECT band, count(*) AS pairs, avg(overlap_3::DOUBLE) AS overlap_3_mean, "
            "stddev_pop(overlap_3::DOUBLE) AS overlap_3_sd, arg_min(struct_pack(filename, "
            f"file_row_number), {draw_key(seed, 'source', 'line', 'rank')}, {per_band}) AS places "
            f"FROM ({_pairs(' UNION ALL BY NAME '.join(parts))}) GROUP BY band HAVING band >= 0 "
            "ORDER BY band",
        ).to_pylist()
        if not found:
            message = "no pair has a paraphrase score within (-0.1, 1.0]: there is nothing to grade"
            raise InputError(message, datasets[0].directory)
        places = [tuple(place.values()) for band in found for place in band["places"]]
        read = _pairs(rows_at(place for band in found for place in band["places"]))
        pairs = {
            (one["filename"], one["file_row_number"]): one for one in fetch(connection, read).to_pylist()
        }
    bands = {band["band"]: BandFigures(*list(band.values())[1:4]) for band in found}
    names = [field.name for field in fields(DrawnPair)]
    first: Any = datasets[0].manifest
    return Draw(
        first.name,
        first.signature,
        manifests_of(datasets),
        seed,
        per_band,
        [bands.get(number, BandFigures()) for number in range(len(BANDS))],
        [DrawnPair(**{name: pairs[place][name] for name in names}) for place in places],
    )


def _pairs(rows: str) -> str:
    """Select what a pair needs, and its band: -1 outside of all; NULL without a score."""
    above = " + ".join(f"(paraphrase_score > '{edge}'::FLOAT)::INT" for edge in BAND_EDGES[:-1])
    return (
        "SELECT source, line, coalesce(rank, 0) AS rank, rejected, reference, translation, filename, "
        "nullif(paraphrase_score, 'nan'::FLOAT) AS paraphrase_score, file_row_number, "
        f"nullif(overlap_3, 'nan'::FLOAT) AS overlap_3, "
        f"if(paraphrase_score IS NULL OR isnan(paraphrase_score), NULL, {above} - 1) AS band "
        f"FROM ({_OPTIONAL} UNION ALL BY NAME {rows})"
    )
