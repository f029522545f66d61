"""Finds negatives: embeds each piece, sorts its texts into cells, and compares anchors with the nearest
cells.

A cell has similar vectors (spherical k-means on a sample), so that an anchor is compared with some thousand
near translations instead of the whole corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.devices import torch_threads
from paraforge.base.files import atomic_path
from paraforge.base.shards.clusters import read_clusters
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.base.shards.work import replaced_directory
from paraforge.base.text.ragged import text_bytes
from paraforge.corpus.selection.filters.whole_corpus import blank
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.products.triplets.pieces import (
    Piece,
    link_keys,
    load,
    open_encoder,
    part,
    save,
    unit_vectors,
)

REASONS = ("blank", "same", "no_vector", "cluster", "margin")
"""Reasons why a pair gives no triplet: a side is blank; both sides are the same except for case, punctuation
and spaces; a side has no vector; the candidates are from its own cluster, or from too few others; the others
are too similar."""
KEPT = 255
CANDIDATES = 8192
"""Number of translations that an anchor is compared with, or all of a smaller corpus."""
ROWS_PER_CELL = 1000
ROWS_PER_JOB = 16_384
# Most allowed candidates to examine, the most similar first, until each negative has its own cluster;
# above the most negatives that can be asked for.
_NEAREST = 64
_MOST_CELLS = 4096  # to keep finding the nearest cell cheap
_SAMPLED_PER_CELL = 32
# Anchors per block of cosines.
_ANCHORS = 256
_ROUNDS = 8  # of k-means
# Vectors per block for nearest cells.
_VECTORS = 4096
Vectors = NDArray[np.float16] | NDArray[np.float32]


@dataclass(frozen=True)
class Search:
    """The description of a search for its jobs.

    directory: directory of the work files. pieces: pieces of the corpus.
    encoder, device, threads: how to compute vectors.
    """

    directory: Path
    pieces: tuple[Piece, ...]
    parameters: TripletsParameters
    encoder: str
    device: str
    threads: int

    @cached_property
    def rows(self) -> int:
        """The rows of the corpus."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def sorted(self) -> Path:
        """The directory that :func:`sort_by_cell` writes."""
        return self.directory / "sorted"

    def embed(self, texts: pa.ChunkedArray) -> NDArray[np.float16]:
        """Embed texts without nulls: vectors of length 1, float16; zeros for a text without a vector."""
        encode, uses_threads = open_encoder(self.encoder, self.device)
        with torch_threads(self.threads if uses_threads else 1):
            return unit_vectors(encode, texts)


def prepare_piece(piece: Piece, search: Search) -> None:
    """Write a piece's files, the reasons last.

    ``keys``: keys that connect pairs. ``texts``, ``sizes``: bytes of all translations, and how many each has.
    ``vectors``: (rows, 2, dimension) of both sides, zeros for a text without a vector. ``reasons``: why rows
    give no triplet.
    """
    reasons_file = part(search.directory, "reasons", piece.number)
    if reasons_file.is_file():
        return
    rows = piece.read([*TEXT_COLUMNS, "source_text", "source", "line"])
    keys = link_keys(rows, search.parameters.same_lines)
    texts = [pc.fill_null(rows[name], "") for name in TEXT_COLUMNS]
    empty = [blank(column) for column in texts]
    vectors = np.stack([search.embed(column) for column in texts], axis=1)
    vectors[np.stack(empty, axis=1)] = 0
    has_vectors = np.all([vectors[:, side].any(1) for side in (0, 1)], axis=0)
    same = (keys[:, 0] == keys[:, 1]).all(1)
    wrong = [empty[0] | empty[1], same, ~has_vectors]
    reasons = np.select(wrong, range(len(wrong)), KEPT).astype(np.uint8)
    save(part(search.directory, "keys", piece.number), keys)
    save(part(search.directory, "vectors", piece.number), vectors)
    # 64-bit offsets, because a piece can have any size.
    data, offsets = text_bytes(pc.cast(texts[1], pa.large_string()).combine_chunks())
    save(part(search.directory, "texts", piece.number), data)
    save(part(search.directory, "sizes", piece.number), np.diff(offsets))
    save(reasons_file, reasons)


def find_centroids(sample: Vectors, cells: int) -> NDArray[np.float32]:
    """Return centroids, (cells, dimension) float32 of length 1; fewer if the sample is smaller; one of zeros
    if there is nothing to divide.

    Computed with one thread, so that they do not depend on the number of threads.

    sample: (n, dimension), of length 1.
    """
    import torch

    if cells <= 1 or len(sample) == 0:
        return np.zeros((1, sample.shape[1]), np.float32)
    vectors = torch.from_numpy(sample.astype(np.float32))
    chosen = np.sort(np.random.default_rng(1).permutation(len(sample))[:cells])
    centroids = vectors[torch.from_numpy(chosen)]
    with torch_threads(1):
        for _ in range(_ROUNDS):
            nearest = torch.from_numpy(nearest_cells(sample, centroids.numpy()))
            sums = torch.zeros_like(centroids).index_add_(0, nearest, vectors)
            # An empty cell stays where it is.
            centroids = torch.where(sums.any(1, keepdim=True), sums, centroids)
            centroids = torch.nn.functional.normalize(centroids, dim=1)
    return np.asarray(centroids.numpy(), np.float32)


def nearest_cells(vectors: Vectors, centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the cell of each vector, (n,)."""
    import torch

    columns = torch.from_numpy(np.ascontiguousarray(centroids.T))
    blocks = [vectors[first : first + _VECTORS] for first in range(0, max(1, len(vectors)), _VECTORS)]
    cells = [(torch.from_numpy(block.astype(np.float32)) @ columns).argmax(1) for block in blocks]
    return np.asarray(torch.cat(cells), np.int64)


def sort_by_cell(search: Search) -> None:
    """Divide the rows whose translation has a vector into cells, and write the directory ``sorted``:
    ``centroids.npy``; ``starts.npy``, (cells + 1,), where each cell begins; and sorted by cell ``rows.npy``,
    ``is_anchor.npy`` and ``vectors.npy``. The pieces' vectors are removed."""
    if search.sorted.is_dir():
        return
    pieces = search.pieces

    def vectors_of(piece: Piece) -> NDArray[np.float16]:
        # Not of all pieces at once: each is an open file until its last view is gone.
        return load(part(search.directory, "vectors", piece.number), True)

    # In a small corpus an anchor is compared with everything.
    cell_count = 1 if search.rows <= CANDIDATES else max(2, min(_MOST_CELLS, search.rows // ROWS_PER_CELL))
    step = max(1, search.rows // (cell_count * _SAMPLED_PER_CELL))
    shape = vectors_of(pieces[0]).shape[1:] if pieces else (2, 1)
    samples = [vectors_of(piece)[::step, 1].copy() for piece in pieces]
    sample = np.concatenate([np.zeros((0, shape[1]), np.float16), *samples])
    centroids = find_centroids(sample[sample.any(1)], cell_count)
    with replaced_directory(search.sorted) as temporary:

        def array(name: str, kind: type, length: int, *more: int) -> NDArray[Any]:
            return np.lib.format.open_memmap(temporary / f"{name}.npy", "w+", kind, (length, *more))

        cells = array("cells", np.int64, search.rows)
        sizes = np.zeros(len(centroids) + 1, np.int64)
        for piece in pieces:
            both = vectors_of(piece)
            # Texts without a vector are in one more cell, which is not written.
            nearest = np.where(both[:, 1].any(1), nearest_cells(both[:, 1], centroids), len(centroids))
            cells[piece.first : piece.first + piece.rows] = nearest
            sizes += np.bincount(nearest, minlength=len(sizes))
        starts = np.cumsum(sizes) - sizes
        following, total = starts.copy(), int(starts[-1])
        rows, is_anchor = array("rows", np.int64, total), array("is_anchor", np.bool_, total)
        sorted_vectors = array("vectors", np.float16, total, *shape)
        for piece in pieces:
            own = cells[piece.first : piece.first + piece.rows]
            order = np.argsort(own, kind="stable")[: np.count_nonzero(own < len(centroids))]
            own = own[order]
            places = following[own] + np.arange(len(own)) - np.searchsorted(own, own)
            rows[places] = piece.first + order
            is_anchor[places] = load(part(search.directory, "reasons", piece.number))[order] == KEPT
            sorted_vectors[places] = vectors_of(piece)[order]
            following += np.bincount(own, minlength=len(sizes))
        save(temporary / "centroids.npy", centroids)
        save(temporary / "starts.npy", starts)
    for piece in pieces:
        part(search.directory, "vectors", piece.number).unlink(missing_ok=True)


def jobs_of(search: Search) -> list[tuple[int, int, int]]:
    """Divide the cells into jobs of about ``ROWS_PER_JOB`` rows: first cell, last cell + 1, rows."""
    starts = load(search.sorted / "starts.npy")
    jobs = max(1, int(starts[-1]) // ROWS_PER_JOB)
    ends = np.linspace(0, len(starts) - 1, jobs + 1).astype(int).tolist()
    return [(first, last, int(starts[last] - starts[first])) for first, last in pairwise(ends)]


@dataclass(frozen=True)
class Pairs:
    """Pairs of the corpus: rows and clusters, (n,), and unit vectors of both sides, (n, dimension)."""

    rows: NDArray[np.int64]
    clusters: NDArray[np.int64]
    sides: tuple[NDArray[np.float32], NDArray[np.float32]]


def search_cells(first: int, last: int, job: int, search: Search) -> None:
    """Find the negatives of the anchors in the cells ``first`` to ``last - 1``.

    Writes ``found-JOB.npz``: ``rows`` of the anchors; ``negatives``, (anchors, n) rows, -1 for none;
    ``cosines``, (anchors, 1 + n), of the positive and the negatives; ``reasons``.
    """
    directory = search.directory
    path = part(directory, "found", job, "npz")
    if path.is_file():
        return
    names = ("starts", "centroids", "rows", "is_anchor", "vectors")
    starts, centroids, rows, is_anchor, vectors = (
        load(search.sorted / f"{name}.npy", True) for name in names
    )
    clusters = read_clusters(directory / "clusters.bin", search.rows)

    def read(places: NDArray[np.int64]) -> Pairs:
        numbers, both = np.asarray(rows[places]), vectors[places].astype(np.float32)
        sides = (both[:, 0].copy(), both[:, 1].copy())
        return Pairs(numbers, np.asarray(clusters[numbers]), sides)

    results = []
    with torch_threads(1):  # so that sums do not depend on the number of threads
        for cell in range(first, last):
            anchors = starts[cell] + np.flatnonzero(is_anchor[starts[cell] : starts[cell + 1]])
            if len(anchors):
                candidates = read(near_places(cell, starts, centroids))
                for start in range(0, len(anchors), _ANCHORS):
                    block = read(anchors[start : start + _ANCHORS])
                    results.append(find_negatives(block, candidates, search.parameters))
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        arrays: dict[str, Any] = {
            name: np.concatenate([result[name] for result in results])
            for name in (results[0] if results else ())
        }
        np.savez(file, allow_pickle=False, **arrays)


def near_places(cell: int, starts: NDArray[np.int64], centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the places of ``CANDIDATES`` rows in the cells nearest to a cell, starting with itself; evenly
    spread in the last one."""
    closeness = centroids @ centroids[cell]
    closeness[cell] = np.inf
    nearest: list[NDArray[np.int64]] = []
    left = CANDIDATES
    for near in np.argsort(-closeness, kind="stable").tolist():
        size = int(starts[near + 1] - starts[near])
        count = min(size, left)
        nearest.append(starts[near] + np.arange(count) * size // max(1, count))
        left -= count
        if not left:
            break
    return np.concatenate(nearest)


def find_negatives(
    anchors: Pairs, candidates: Pairs, parameters: TripletsParameters
) -> dict[str, NDArray[Any]]:
    """Choose the most similar allowed candidates of each anchor, from different clusters.

    A candidate is allowed if it is from another cluster and no cosine of either of its sides with either side
    of the anchor reaches the limit: positive - margin * abs(positive), which is (1 - margin) times a positive
    cosine. Returns the arrays that :func:`search_cells` writes.
    """
    import torch

    negatives = parameters.negatives
    positives = np.einsum("ij,ij->i", *anchors.sides).astype(np.float64)
    limits = torch.from_numpy(positives - parameters.margin * np.abs(positives))[:, None]
    sides = [[torch.from_numpy(side) for side in pairs.sides] for pairs in (anchors, candidates)]
    products = [first @ second.T for first in sides[0] for second in sides[1]]
    cosines = products[1]  # reference of the anchor, translation of the candidate
    own = torch.from_numpy(anchors.clusters)[:, None] == torch.from_numpy(candidates.clusters)
    too_similar = ~own & (reduce(torch.maximum, products).double() >= limits)
    allowed = cosines.masked_fill(own | too_similar, -torch.inf)
    best, at = allowed.topk(min(_NEAREST, allowed.shape[1]), dim=1)
    clusters = np.where(best.isfinite().numpy(), candidates.clusters[at.numpy()], -1)
    # Only the first candidate of each cluster is used.
    repeated = np.zeros(clusters.shape, np.bool_)
    for column in range(1, clusters.shape[1]):
        repeated[:, column] = (clusters[:, :column] == clusters[:, column : column + 1]).any(1)
    usable = (clusters >= 0) & ~repeated
    chosen = np.argsort(~usable, axis=1, kind="stable")[:, :negatives]
    complete = usable.sum(1) >= negatives
    negatives_of = np.full((len(positives), negatives), -1, np.int64)
    values = np.full((len(positives), negatives), -np.inf, np.float32)
    if complete.any():
        negatives_of[complete] = np.take_along_axis(candidates.rows[at.numpy()], chosen, 1)[complete]
        values[complete] = np.take_along_axis(best.numpy(), chosen, 1)[complete]
    why = np.where(too_similar.any(1).numpy(), REASONS.index("margin"), REASONS.index("cluster"))
    return {
        "rows": anchors.rows,
        "negatives": negatives_of,
        "cosines": np.concatenate([positives.astype(np.float32)[:, None], values], axis=1),
        "reasons": np.where(complete, KEPT, why).astype(np.uint8),
    }
