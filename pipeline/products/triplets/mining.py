"""Mines triplets: a pair's reference and translation, with similar translations that are not paraphrases."""

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge import versions
from paraforge.base.devices import chosen_device
from paraforge.base.errors import IncompleteError, InputError, reading
from paraforge.base.files import hash_json, read_json, remove_directory, write_json
from paraforge.base.progress import progress
from paraforge.base.shards.clusters import find_clusters, read_clusters
from paraforge.base.shards.lineage import LINEAGE
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import open_jobs
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.shards.store import write_shard
from paraforge.base.shards.work import WorkDirectory, replaced_directory
from paraforge.base.text.ragged import offsets_of, ranges
from paraforge.corpus.publication.datasets import open_published
from paraforge.corpus.publication.manifest import KEPT as KEPT_PAIRS
from paraforge.corpus.publication.manifest import TRAIN
from paraforge.corpus.scoring import general
from paraforge.products.triplets.layout import (
    FORMAT,
    MANIFEST,
    PARTS,
    card_metadata,
    file_name,
    schemas,
    write_card,
)
from paraforge.products.triplets.parameters import NO_ENCODER, TripletsParameters
from paraforge.products.triplets.pieces import (
    LINKS,
    Piece,
    cut_corpus,
    expand_encoder_name,
    fingerprint,
    load,
    part,
)
from paraforge.products.triplets.search import (
    KEPT,
    REASONS,
    Search,
    jobs_of,
    prepare_piece,
    search_cells,
    sort_by_cell,
)

logger = logging.getLogger(__name__)

STEP = "triplets"


@dataclass(frozen=True)
class TripletsReport:
    """The result of mining: ``rows`` = ``triplets`` + all of ``left_out``.

    clusters: number of clusters of all rows; largest_cluster: rows of the largest one.
    positive_cosine, negative_cosine: mean cosines of the anchor with the positive and with the negatives;
        None without a triplet.
    """

    encoder: str
    rows: int = 0
    triplets: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    clusters: int = 0
    largest_cluster: int = 0
    positive_cosine: float | None = None
    negative_cosine: float | None = None
    seconds: float = 0.0


def mine_triplets(
    parameters: TripletsParameters,
    corpus: Path,
    output: Path,
    resources: Resources,
    allow_empty: bool = False,
) -> TripletsReport:
    """Mine triplets over a whole published corpus and replace the directory ``output``.

    A negative is a translation to which neither anchor nor positive is too similar, and neither is the
    reference that it is paired with: these cosines are below (1 - margin) times the positive's. It is never
    from the anchor's own cluster, that is, pairs connected by a text (ignoring case, punctuation and spaces),
    a foreign side or an image. Memory does not grow with the corpus; the work directory takes up to 8 bytes
    per pair for each dimension, and 300.

    parameters: the encoder and the limits. corpus: a published corpus. output: directory to write.
    resources: where to run. allow_empty: warn, instead of raising, if no triplet is found.

    Raises:
        InputError: if it is not a published corpus, there is no such encoder, or no triplet is found.
        MissingPackageError: if a package that the encoder needs is not installed.
        WorkLockedError: if another process is mining triplets in this work directory.
    """
    started = time.monotonic()
    if parameters.encoder == NO_ENCODER:
        with replaced_directory(output) as temporary:
            write_json(
                temporary / MANIFEST, {"format": FORMAT, "encoder": NO_ENCODER, "triplets": 0, "files": []}
            )
        return TripletsReport(NO_ENCODER)
    dataset = open_published(corpus).training
    if dataset.manifest is None or dataset.name != KEPT_PAIRS:
        raise InputError(
            "this directory contains rejected pairs",
            corpus,
            remedy="Use the directory with the kept pairs, data/corpus.",
        )
    metadata = card_metadata(corpus)
    encoder = expand_encoder_name(parameters.encoder)
    files = [file.sha256 for file in dataset.manifest.files if file.split == TRAIN]
    made_of = _made_of(parameters, files, fingerprint(encoder))
    work = WorkDirectory(STEP, resources.work.resolve())
    with work.lock():
        directory = work.path / hash_json(made_of)[:40]
        work.keep_only([directory.name])
        directory.mkdir(exist_ok=True)
        search = Search(
            directory=directory,
            pieces=tuple(cut_corpus(dataset)),
            parameters=parameters,
            encoder=encoder,
            device="cpu" if encoder == general.NAME else chosen_device(resources.devices[0]),
            threads=resources.thread_count(),
        )
        clusters, largest = _search(search, resources)
        lineage = [name for name in LINEAGE if name in dataset.schema.names]
        kinds = schemas(parameters.negatives, lineage)
        with replaced_directory(output.resolve()) as temporary:
            written, left_out, sums = _write_files(search, temporary, lineage, kinds)
            triplets = sum(file["rows"] for file in written if file["file"].startswith(PARTS[0]))
            if triplets + sum(left_out.values()) != search.rows:
                raise IncompleteError(f"{search.rows} rows in, {triplets} triplets, left out: {left_out}")
            if not triplets:
                listed = ", ".join(f"{reason} {number:,}" for reason, number in left_out.items())
                message = f"none of {search.rows:,} pairs gives a triplet: {listed or 'the corpus is empty'}"
                if not allow_empty:
                    raise InputError(message, corpus)
                logger.warning("%s", message)
            numbers = (triplets, triplets * parameters.negatives)
            means = [round(total / n, 4) if n else None for total, n in zip(sums, numbers, strict=True)]
            report = TripletsReport(
                parameters.encoder, search.rows, triplets, left_out, clusters, largest, means[0], means[1]
            )
            counts_of = {name: value for name, value in asdict(report).items() if name != "seconds"}
            content = {
                "format": FORMAT,
                "paraforge": versions.__version__,
                **counts_of,
                **made_of,
                "files": written,
            }
            write_json(temporary / MANIFEST, content)
            write_card(temporary, content, dataset, metadata, kinds)
        remove_directory(directory)
    return replace(report, seconds=round(time.monotonic() - started, 3))


def _made_of(parameters: TripletsParameters, corpus: Sequence[str], encoder: str) -> dict[str, Any]:
    """Return everything that the result depends on. corpus, encoder: SHA-256 of their files."""
    return {
        "version": versions.TRIPLETS,
        "corpus": corpus,
        "encoder_sha256": encoder,
        "parameters": parameters.model_dump(mode="json", exclude={"encoder"}),
    }


def _search(search: Search, resources: Resources) -> tuple[int, int]:
    """Find negatives for all rows. Returns the number of clusters and the rows of the largest one. Finished
    work of an earlier run is reused."""
    with open_jobs(resources, search.rows, workers=1 if search.device != "cpu" else None) as jobs:
        jobs.results(
            prepare_piece,
            [(piece, search) for piece in search.pieces],
            description="triplets: embed",
            unit="pairs",
            sizes=[piece.rows for piece in search.pieces],
        )
    report = search.directory / "clusters.json"
    if not report.is_file():
        ranking, output = search.directory / "ranking", search.directory / "clusters.bin"
        keys = (load(part(search.directory, "keys", piece.number)) for piece in search.pieces)
        result = find_clusters(keys, search.rows, LINKS, ranking, output, "triplets: clusters")
        write_json(report, [int(number) for number in result])
    sort_by_cell(search)
    spans = jobs_of(search)
    with open_jobs(resources, search.rows) as jobs:
        jobs.results(
            search_cells,
            [(first, last, number, search) for number, (first, last, _) in enumerate(spans)],
            description="triplets: search",
            unit="pairs",
            sizes=[rows for *_, rows in spans],
        )
    _gather(len(spans), search)
    clusters, largest = read_json(report)
    return clusters, largest


_RESULTS = {"negatives": np.int64, "cosines": np.float32, "reasons": np.uint8}


def _gather(jobs: int, search: Search) -> None:
    """Write the jobs' results in the order of the corpus: ``negatives.npy``, (rows, n); ``cosines.npy``,
    (rows, 1 + n); ``reasons.npy``, (rows,). Also join the texts: ``texts.npy``, bytes, and where each begins,
    ``starts.npy``, (rows + 1,)."""
    rows, number = search.rows, search.parameters.negatives
    shapes = {"negatives": (rows, number), "cosines": (rows, 1 + number), "reasons": (rows,)}
    arrays = {
        name: np.lib.format.open_memmap(search.directory / f"{name}.npy", "w+", kind, shapes[name])
        for name, kind in _RESULTS.items()
    }
    starts = np.lib.format.open_memmap(search.directory / "starts.npy", "w+", np.int64, (rows + 1,))
    for piece in search.pieces:
        end = piece.first + piece.rows
        arrays["reasons"][piece.first : end] = load(part(search.directory, "reasons", piece.number))
        sizes = load(part(search.directory, "sizes", piece.number))
        starts[piece.first + 1 : end + 1] = starts[piece.first] + np.cumsum(sizes)
    texts = np.lib.format.open_memmap(search.directory / "texts.npy", "w+", np.uint8, (int(starts[-1]),))
    for piece in search.pieces:
        loaded = load(part(search.directory, "texts", piece.number))
        texts[starts[piece.first] : starts[piece.first + piece.rows]] = loaded
    for job in range(jobs):
        path = part(search.directory, "found", job, "npz")
        with reading(path), np.load(path, allow_pickle=False) as loaded:
            for name in loaded.keys() & arrays.keys():
                arrays[name][loaded["rows"]] = loaded[name]
    for array in (*arrays.values(), starts, texts):
        array.flush()


def _write_files(
    search: Search, output: Path, lineage: Sequence[str], kinds: Mapping[str, pa.Schema]
) -> tuple[list[dict[str, Any]], dict[str, int], list[float]]:
    """Write the output's Parquet files.

    Returns the name, rows and SHA-256 of each; the pairs left out by reason; and sums of cosines, over the
    positives and over all negatives.
    """
    files: list[dict[str, Any]] = []
    left_out: Counter[str] = Counter()
    sums = np.zeros(2)
    with progress(total=search.rows, unit="pairs", description="triplets: write") as bar:
        for piece in search.pieces:
            tables, reasons, cosines = _tables(piece, lineage, search, kinds)
            for name, table in tables.items():
                files.append(asdict(write_shard(table, output / file_name(name, piece.number))))
            left_out.update(reasons)
            sums += cosines
            bar.update(piece.rows)
    return files, dict(sorted(left_out.items())), sums.tolist()


def _tables(
    piece: Piece, lineage: Sequence[str], search: Search, kinds: Mapping[str, pa.Schema]
) -> tuple[dict[str, pa.Table], Counter[str], NDArray[np.float64]]:
    """Return the rows of a piece for each file, the number left out by reason, and sums of cosines."""
    span = slice(piece.first, piece.first + piece.rows)
    arrays = {name: np.asarray(load(search.directory / f"{name}.npy", True)[span]) for name in _RESULTS}
    clusters = np.asarray(read_clusters(search.directory / "clusters.bin", search.rows)[span])
    rows = piece.read([*TEXT_COLUMNS, *lineage])
    kept = np.flatnonzero(arrays["reasons"] == KEPT)
    negatives, cosines = arrays["negatives"][kept], arrays["cosines"][kept]
    own = rows.take(pa.array(kept))
    names = np.array([*REASONS, *[None] * (KEPT + 1 - len(REASONS))], dtype=object)[arrays["reasons"]]
    columns = {
        "triplets": [
            *(own[name] for name in TEXT_COLUMNS),
            *(_texts(column, search) for column in negatives.T),
        ],
        "_lineage": [
            piece.first + kept,
            *(own[name] for name in lineage),
            clusters[kept],
            cosines[:, 0],
            *np.ascontiguousarray(negatives.T),
            *np.ascontiguousarray(cosines[:, 1:].T),
        ],
        "_clusters": [*(rows[name] for name in lineage), clusters, pa.array(names, pa.string())],
    }
    tables = {name: pa.table(values, schema=kinds[name]) for name, values in columns.items()}
    counts = Counter(name for name in names.tolist() if name is not None)
    sums = [part.sum(dtype=np.float64) for part in (cosines[:, 0], cosines[:, 1:])]
    return tables, counts, np.array(sums)


def _texts(chosen: NDArray[np.int64], search: Search) -> pa.Array:
    """Return the translations of rows anywhere in the corpus, in the order of ``chosen``."""
    order = np.argsort(chosen, kind="stable")
    rows = chosen[order]  # a disk reads in this order faster
    starts, texts = (load(search.directory / f"{name}.npy", True) for name in ("starts", "texts"))
    sizes = starts[rows + 1] - starts[rows]
    buffers = [pa.py_buffer(offsets_of(sizes)), pa.py_buffer(texts[ranges(starts[rows], sizes)])]
    array = pa.LargeStringArray.from_buffers(len(rows), *buffers)
    return array.take(pa.array(np.argsort(order))).cast(pa.string())
