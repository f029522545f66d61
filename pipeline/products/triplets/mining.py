"""Mines triplets: a pair's reference and translation, and similar translations that are no paraphrases."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paraforge import versions
from paraforge.base.devices import chosen_device
from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import hash_json, read_json_or_none, remove_directory, sha256_file, write_json
from paraforge.base.sealed import can_resume, write_sealed_json
from paraforge.base.shards.clusters import find_clusters
from paraforge.base.shards.lineage import LINEAGE
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import Jobs, open_jobs
from paraforge.base.shards.work import WorkDirectory, link_or_copy, replaced_directory
from paraforge.corpus.publication.datasets import Dataset, open_published
from paraforge.corpus.publication.manifest import KEPT
from paraforge.corpus.scoring import general
from paraforge.products.lexicon.encoding import write_npy
from paraforge.products.triplets.encoder import fingerprint, open_encoder
from paraforge.products.triplets.layout import FORMAT, MANIFEST, PARTS, schemas, write_card
from paraforge.products.triplets.parameters import NO_ENCODER, TripletsParameters
from paraforge.products.triplets.pieces import LINKS, Piece, cut_corpus, part, read_array
from paraforge.products.triplets.preparation import (
    Preparation,
    cells_for,
    find_centroids,
    prepare_piece,
    sample_piece,
    sampled_share,
)
from paraforge.products.triplets.search import ANCHORS_PER_JOB, NeighbourSearch, search_anchors
from paraforge.products.triplets.triplet_files import PIECES_PER_FILE, Assembly, gather, write_files

logger = logging.getLogger(__name__)

STEP = "triplets"
FILES = "files"
"""Directory of the files that are published."""


@dataclass(frozen=True)
class TripletsReport:
    """What mining gave: ``rows`` = ``triplets`` + all of ``left_out``.

    clusters: of all rows; largest_cluster: rows of the largest one.
    positive_cosine, negative_cosine: means, of the anchor with the positive and with the negatives; None
        without a triplet.
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
    """Mine triplets over a whole published corpus and put them in place of the directory ``output``.

    A negative is a translation that neither anchor nor positive comes near, nor the reference that it is
    paired with: their cosines are below (1 - margin) times the positive's. It is never of the anchor's own
    cluster: what is connected by a text (whatever its case, punctuation and spaces), a foreign side or an
    image. Memory does not grow with the corpus; the work directory takes about 8 bytes per pair for each
    dimension, and 500.

    parameters: encoder and what is allowed. corpus: a published corpus. output: directory to make.
    resources: where to run. allow_empty: whether it is no error, but a warning, if no triplet is found.

    Raises:
        InputError: no published corpus, no such encoder, or no triplet is found.
        MissingPackageError: a package that the encoder needs is not installed.
        WorkLockedError: another process mines triplets in the same work directory.
        Interrupted: SIGTERM or Ctrl-C; what is finished is kept, and the same call continues from there.
    """
    started = time.monotonic()
    if parameters.encoder == NO_ENCODER:
        with replaced_directory(output) as temporary:
            nothing = {"format": FORMAT, "encoder": NO_ENCODER, "triplets": 0, "files": []}
            write_json(temporary / MANIFEST, nothing)
        return TripletsReport(NO_ENCODER)
    dataset = open_published(corpus).training
    if dataset.name != KEPT:
        raise InputError("these are rejected pairs", corpus, remedy="Name the corpus, e.g. data/corpus.")
    made_of = {
        "version": versions.TRIPLETS,
        "corpus": [sha256_file(path) for path in dataset.files],
        "encoder_sha256": fingerprint(expanded(parameters.encoder)),
        "parameters": parameters.model_dump(
            mode="json", exclude={"encoder"} if parameters.contradictions else {"encoder", "contradictions"}
        ),
    }
    work = WorkDirectory(STEP, resources.work.resolve())
    with work.lock():
        directory = work.path / hash_json(made_of)[:40]
        # Another key cannot use these files: an abandoned run must not fill the disk for good.
        for left in work.path.iterdir():
            if left.is_dir() and left != directory:
                remove_directory(left)
        resumed = can_resume(directory, FILES)
        try:
            report = _Mining(parameters, dataset, directory, resources).run(output, made_of, allow_empty)
        except (ValueError, KeyError, EOFError, FileNotFoundError) as error:
            if not resumed:
                raise
            logger.warning("%s is damaged (%s): mining anew", directory, error)
            remove_directory(directory)
            report = _Mining(parameters, dataset, directory, resources).run(output, made_of, allow_empty)
        remove_directory(directory)
    return TripletsReport(**{**report, "seconds": round(time.monotonic() - started, 3)})


def expanded(encoder: str) -> str:
    """An encoder's name with environment variables filled in, so that it means the same in every process."""
    from paraforge.base.text.paths import expand

    path = expand(encoder)
    return str(Path(path).resolve()) if encoder != general.NAME and Path(path).exists() else path


class _Mining:
    """One run: each pass over the corpus leaves files in the directory, and is not done again."""

    def __init__(
        self, parameters: TripletsParameters, dataset: Dataset, directory: Path, resources: Resources
    ) -> None:
        self.parameters = parameters
        self.dataset = dataset
        self.directory = directory
        self.resources = resources
        self.pieces = cut_corpus(dataset)
        self.rows = sum(piece.rows for piece in self.pieces)
        directory.mkdir(parents=True, exist_ok=True)

    def run(self, output: Path, made_of: dict[str, Any], allow_empty: bool) -> dict[str, Any]:
        """All passes; gives what the report says."""
        anchors, dimension = self._prepare()
        clusters, largest = self._clusters()
        search = NeighbourSearch(
            directory=self.directory,
            pieces=len(self.pieces),
            rows=self.rows,
            dimension=dimension,
            parameters=self.parameters,
        )
        with self._jobs(self.rows) as jobs:
            self._search(jobs, anchors, search)
            written = self._write(jobs, search)
        left_out: Counter[str] = Counter()
        for one in written:
            left_out.update(one["left_out"])
        files = [file for one in written for file in one["files"]]
        triplets = sum(file["rows"] for file in files if file["file"].startswith(PARTS[0]))
        if triplets + left_out.total() != self.rows:
            raise IncompleteError(f"{self.rows} rows in, {triplets} triplets, left out: {dict(left_out)}")
        if not triplets:
            listed = ", ".join(f"{reason} {number:,}" for reason, number in left_out.items())
            message = f"none of {self.rows:,} pairs gives a triplet" + (f": {listed}" if listed else "")
            if not allow_empty:
                raise InputError(message, self.dataset.directory)
            logger.warning("%s", message)
        sums = np.sum([one["cosines"] for one in written], axis=0) if triplets else np.zeros(2)
        report = {
            "encoder": self.parameters.encoder,
            "rows": self.rows,
            "triplets": triplets,
            "left_out": dict(sorted(left_out.items())),
            "clusters": clusters,
            "largest_cluster": largest,
            "positive_cosine": round(float(sums[0]) / triplets, 4) if triplets else None,
            "negative_cosine": round(float(sums[1]) / triplets / self.parameters.negatives, 4)
            if triplets
            else None,
        }
        self._publish(output, files, {**report, **made_of})
        return report

    def _jobs(self, rows: int, on_gpu: bool = False) -> Any:
        return open_jobs(self.resources, rows, workers=1 if on_gpu else None)

    def _prepare(self) -> tuple[int, int]:
        """Vectors of all pieces; gives the number of anchors and the vectors' dimension."""
        name = expanded(self.parameters.encoder)
        device = "cpu" if name == general.NAME else chosen_device(self.resources.devices[0])
        dimension = open_encoder(name, device).dimension
        setup = Preparation(
            encoder=name,
            device=device,
            threads=self.resources.thread_count(),
            same_lines=tuple(self.parameters.same_lines),
            seed=self.parameters.seed,
            directory=self.directory,
        )
        sizes = [piece.rows for piece in self.pieces]
        with self._jobs(self.rows, on_gpu=device != "cpu") as jobs:
            self._cells(jobs, setup, dimension)
            arguments = [(piece, index, setup) for index, piece in enumerate(self.pieces)]
            found = jobs.results(
                prepare_piece, arguments, description="triplets: embed", unit="pairs", sizes=sizes
            )
            return sum(found), dimension

    def _cells(self, jobs: Jobs, setup: Preparation, dimension: int) -> None:
        path = self.directory / "centroids.npy"
        if path.is_file():
            return
        cells = cells_for(self.rows, self.parameters.candidates)
        centroids = np.zeros((1, dimension), np.float32)
        if cells > 1:
            share = sampled_share(self.rows, cells)
            arguments = [(piece, index, share, setup) for index, piece in enumerate(self.pieces)]
            jobs.results(sample_piece, arguments, description="triplets: sample")
            parts = [
                np.load(part(self.directory, "sample", index, "npy"), allow_pickle=False)
                for index in range(len(self.pieces))
            ]
            sample = np.concatenate(parts)
            centroids = find_centroids(sample, cells, self.parameters.seed) if len(sample) else centroids
        write_npy(centroids, path)

    def _clusters(self) -> tuple[int, int]:
        report = self.directory / "clusters.json"
        if done := read_json_or_none(report):
            return done["clusters"], done["largest"]
        ranking, output = self.directory / "ranking", self.directory / "clusters.bin"
        clusters, largest = find_clusters(
            self._keys(), self.rows, LINKS, ranking, output, "triplets: clusters"
        )
        write_sealed_json(report, {"clusters": int(clusters), "largest": int(largest)})
        return int(clusters), int(largest)

    def _keys(self) -> Iterator[NDArray[np.uint64]]:
        for index in range(len(self.pieces)):
            yield read_array(part(self.directory, "keys", index), np.uint64, width=2 * LINKS)

    def _search(self, jobs: Jobs, anchors: int, search: NeighbourSearch) -> None:
        spans = [
            (first, min(first + ANCHORS_PER_JOB, anchors)) for first in range(0, anchors, ANCHORS_PER_JOB)
        ]
        arguments = [(*span, number, search) for number, span in enumerate(spans)]
        sizes = [last - first for first, last in spans]
        jobs.results(search_anchors, arguments, description="triplets: search", unit="anchors", sizes=sizes)
        gather(len(spans), self.pieces, search)

    def _write(self, jobs: Jobs, search: NeighbourSearch) -> list[dict[str, Any]]:
        starts = tuple(piece.first for piece in self.pieces)
        assembly = Assembly(self.directory / FILES, search, starts)
        assembly.output.mkdir(exist_ok=True)
        parts: list[Sequence[Piece]] = [
            self.pieces[first : first + PIECES_PER_FILE]
            for first in range(0, len(self.pieces), PIECES_PER_FILE)
        ]
        arguments = [(number, pieces, assembly) for number, pieces in enumerate(parts)]
        sizes = [sum(piece.rows for piece in pieces) for pieces in parts]
        return jobs.results(write_files, arguments, description="triplets: write", unit="pairs", sizes=sizes)

    def _publish(self, output: Path, files: list[dict[str, Any]], content: dict[str, Any]) -> None:
        with replaced_directory(output.resolve()) as temporary:
            for file in files:
                link_or_copy(self.directory / FILES / file["file"], temporary / file["file"])
            manifest = {"format": FORMAT, "paraforge": versions.__version__, **content, "files": files}
            write_json(temporary / MANIFEST, manifest)
            lineage = [name for name in LINEAGE if name in self.dataset.schema.names]
            kinds = schemas(self.parameters.negatives, lineage, self.parameters.contradictions)
            write_card(temporary, manifest, self.dataset, kinds)
