"""Finds negatives: embeds each piece, sorts its texts into cells, and compares anchors with the nearest
cells.

A cell has similar vectors (spherical k-means on a sample), so that an anchor is compared with some thousand
near translations instead of the whole corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.feather import write_feather

from paraforge.base.devices import torch_threads
from paraforge.base.files import atomic_path
from paraforge.base.shards.clusters import read_clusters
from paraforge.base.shards.lineage import mixed
from paraforge.corpus.selection.filters.near_duplicates import blank
from paraforge.products.triplets.cells import find_centroids, nearest_cells
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.products.triplets.pieces import (
    SIDES,
    Piece,
    Vectors,
    has_vector,
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
ANCHORS_PER_JOB = 16_384
# Most allowed candidates to examine, the most similar first, until each negative has its own cluster.
_NEAREST = 64
_MOST_CELLS = 4096  # to keep finding the nearest cell cheap
_SAMPLED_PER_CELL = 32
# Anchors per block of cosines.
_ANCHORS = 256


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

    @cached_property
    def cells(self) -> int:
        """The desired number of cells; 1 if an anchor is compared with everything."""
        if self.rows <= CANDIDATES:
            return 1
        return max(2, min(_MOST_CELLS, self.rows // ROWS_PER_CELL))

    def embed(self, texts: pa.ChunkedArray) -> Vectors:
        """Embed texts without nulls: vectors of length 1, float16; zeros for a text without a vector."""
        encoder = open_encoder(self.encoder, self.device)
        with torch_threads(self.threads if encoder.uses_threads else 1):
            return unit_vectors(encoder, texts)


def write_centroids(search: Search) -> None:
    """Find the centroids of the cells on a sample of translations, and write them."""
    path = search.directory / "centroids.npy"
    if path.is_file():
        return
    cells, seed = search.cells, search.parameters.seed
    share = min(1.0, _SAMPLED_PER_CELL * cells / max(1, search.rows)) if cells > 1 else 0.0
    texts = [pa.array([], pa.string())]
    for piece in search.pieces if cells > 1 else ():
        numbers = np.arange(piece.first, piece.first + piece.rows, dtype=np.uint64)
        drawn = mixed(numbers, f"triplets {seed}").astype(np.float64) / 2.0**64 < share
        column = piece.read(SIDES)["translation"].filter(pa.array(drawn))
        texts += [chunk.cast(pa.string()) for chunk in pc.fill_null(column, "").chunks]
    sample = search.embed(pa.chunked_array(texts))
    save(path, find_centroids(sample[has_vector(sample)], cells, seed))


def prepare_piece(piece: Piece, search: Search) -> None:
    """Write a piece's files, the reasons last.

    ``keys``: keys that connect its pairs. ``texts``: its translations. ``candidates``: rows whose translation
    has a vector, sorted by cell, with ``vectors``, (candidates, 2, dimension) of both sides. ``anchors``:
    indices of candidates sorted by the cell of their reference. ``ends``: where each cell begins among
    anchors and candidates. ``reasons``: why rows give no triplet.
    """
    reasons_file = part(search.directory, "reasons", piece.number)
    if reasons_file.is_file():
        return
    rows = piece.read([*SIDES, "source_text", "source", "line"])
    keys = link_keys(rows, search.parameters.same_lines)
    texts = [pc.fill_null(rows[name], "") for name in SIDES]
    empty = [blank(column) for column in texts]
    vectors = np.stack([search.embed(column) for column in texts], axis=1)
    usable = [has_vector(vectors[:, side]) & ~empty[side] for side in (0, 1)]
    same = (keys[:, 0] == keys[:, 1]).all(1)
    reasons = np.select(
        [empty[0] | empty[1], same, ~(usable[0] & usable[1])], range(len(REASONS[:3])), KEPT
    ).astype(np.uint8)
    centroids = load(search.directory / "centroids.npy")
    cells = np.stack([nearest_cells(vectors[:, side], centroids) for side in (0, 1)], axis=1)
    cells[reasons != KEPT, 0] = -1
    candidates = np.flatnonzero(usable[1])
    order = candidates[np.argsort(cells[candidates, 1], kind="stable")]
    borders = np.arange(len(centroids) + 1)
    ends = [np.searchsorted(np.sort(cells[order, side]), borders) for side in (0, 1)]
    save(part(search.directory, "keys", piece.number), keys)
    save(part(search.directory, "vectors", piece.number), vectors[order])
    save(part(search.directory, "candidates", piece.number), order + piece.first)
    save(part(search.directory, "anchors", piece.number), np.argsort(cells[order, 0], kind="stable"))
    save(part(search.directory, "ends", piece.number), np.array(ends))
    # 64-bit offsets, because a piece can have any size.
    column = pc.cast(texts[1].combine_chunks(), pa.large_string())
    with atomic_path(part(search.directory, "texts", piece.number, "arrow")) as temporary:
        write_feather(pa.table({"text": column}), str(temporary), compression="uncompressed")
    save(reasons_file, reasons)


class Cells:
    """The positions of each cell's anchors and candidates in the files of each piece."""

    def __init__(self, directory: Path, pieces: int) -> None:
        """Read the starts of the cells of all pieces."""
        self.directory = directory
        self.centroids = load(directory / "centroids.npy")
        self.ends = np.stack([load(part(directory, "ends", number)) for number in range(pieces)], axis=1)
        """Starts of anchors and of candidates: (2, pieces, cells + 1)."""

    def anchors_of(self, cell: int) -> list[NDArray[np.int64]]:
        """Return the positions of a cell's anchors in each piece."""
        found = []
        for piece, ends in enumerate(self.ends[0]):
            first, last = ends[cell], ends[cell + 1]
            places = load(part(self.directory, "anchors", piece), True) if first < last else np.zeros(0, int)
            found.append(np.sort(places[first:last]))
        return found

    def candidates_of(self, cell: int, wanted: int) -> list[NDArray[np.int64]]:
        """Return the positions of about ``wanted`` candidates in each piece, from the nearest cells, starting
        with the cell itself. If a cell has more than the remaining number, the first of each piece are
        used."""
        ends = self.ends[1]
        places: list[list[NDArray[np.int64]]] = [[] for _ in range(len(ends))]
        closeness = self.centroids @ self.centroids[cell]
        closeness[cell] = np.inf
        left = wanted
        for near in np.argsort(-closeness, kind="stable").tolist():
            sizes = ends[:, near + 1] - ends[:, near]
            total = int(sizes.sum())
            taken = sizes if total <= left else -(-sizes * left // total)
            for piece in np.flatnonzero(taken).tolist():
                places[piece].append(ends[piece, near] + np.arange(taken[piece]))
            left -= total
            if left <= 0:
                break
        return [np.concatenate([np.zeros(0, np.int64), *one]) for one in places]


@lru_cache(maxsize=1)
def _cells(directory: Path, pieces: int) -> Cells:
    return Cells(directory, pieces)


def jobs_of(search: Search) -> list[tuple[int, int, int]]:
    """Divide the cells into jobs of about ``ANCHORS_PER_JOB`` anchors: first cell, last cell + 1, anchors."""
    if not search.pieces:
        return []
    sizes = np.diff(_cells(search.directory, len(search.pieces)).ends[0], axis=1).sum(0)
    jobs: list[tuple[int, int, int]] = []
    first, anchors = 0, 0
    for cell, size in enumerate(sizes.tolist()):
        anchors += size
        if anchors >= ANCHORS_PER_JOB or (anchors and cell == len(sizes) - 1):
            jobs.append((first, cell + 1, anchors))
            first, anchors = cell + 1, 0
    return jobs


def search_cells(first: int, last: int, job: int, search: Search) -> None:
    """Find the negatives of the anchors in the cells ``first`` to ``last - 1``.

    Writes ``found-JOB.npz``: ``rows`` of the anchors; ``negatives``, (anchors, n) rows, -1 for none;
    ``cosines``, (anchors, 1 + n), of the positive and the negatives; ``reasons``.
    """
    path = part(search.directory, "found", job, "npz")
    if path.is_file():
        return
    cells = _cells(search.directory, len(search.pieces))
    clusters = read_clusters(search.directory / "clusters.bin", search.rows)
    found = []
    with torch_threads(1):  # so that sums do not depend on the number of threads
        for cell in range(first, last):
            anchors = _read(cells.anchors_of(cell), clusters, search)
            if len(anchors.rows):
                candidates = _read(cells.candidates_of(cell, CANDIDATES), clusters, search)
                found += [
                    find_negatives(anchors[start : start + _ANCHORS], candidates, search.parameters)
                    for start in range(0, len(anchors.rows), _ANCHORS)
                ]
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        arrays: dict[str, Any] = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        np.savez(file, allow_pickle=False, **arrays)


@dataclass(frozen=True)
class Pairs:
    """Pairs of the corpus: rows and clusters, (n,), and unit vectors of both sides, (n, dimension)."""

    rows: NDArray[np.int64]
    clusters: NDArray[np.int64]
    sides: tuple[NDArray[np.float32], NDArray[np.float32]]

    def __getitem__(self, span: slice) -> Pairs:
        return Pairs(self.rows[span], self.clusters[span], (self.sides[0][span], self.sides[1][span]))


def _read(places: Sequence[NDArray[np.int64]], clusters: NDArray[np.int64], search: Search) -> Pairs:
    """Read pairs by their positions in the files of each piece."""
    chosen = [(piece.number, at) for piece, at in zip(search.pieces, places, strict=True) if len(at)]
    if not chosen:
        nothing = np.zeros(0, np.int64)
        return Pairs(nothing, nothing, (np.zeros((0, 1), np.float32), np.zeros((0, 1), np.float32)))
    vectors = np.concatenate([load(part(search.directory, "vectors", n), True)[at] for n, at in chosen])
    rows = np.concatenate([load(part(search.directory, "candidates", n), True)[at] for n, at in chosen])
    sides = vectors.astype(np.float32)
    return Pairs(rows, np.asarray(clusters[rows]), (sides[:, 0].copy(), sides[:, 1].copy()))


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
    positives = np.einsum("ij,ij->i", anchors.sides[0], anchors.sides[1]).astype(np.float64)
    limits = torch.from_numpy(positives - parameters.margin * np.abs(positives))[:, None]
    sides = [[torch.from_numpy(side) for side in pairs.sides] for pairs in (anchors, candidates)]
    products = [one @ other.T for one in sides[0] for other in sides[1]]
    cosines = products[1]  # reference of the anchor, translation of the candidate
    own = torch.from_numpy(anchors.clusters)[:, None] == torch.from_numpy(candidates.clusters)
    too_similar = ~own & (reduce(torch.maximum, products).double() >= limits)
    allowed = cosines.masked_fill(own | too_similar, -torch.inf)
    best, at = allowed.topk(min(max(_NEAREST, negatives), allowed.shape[1]), dim=1)
    clusters = np.where(best.isfinite().numpy(), candidates.clusters[at.numpy()], -1)
    # Only the first candidate of each cluster is used.
    repeated = np.zeros(clusters.shape, np.bool_)
    for column in range(1, clusters.shape[1]):
        repeated[:, column] = (clusters[:, :column] == clusters[:, column : column + 1]).any(1)
    usable = (clusters >= 0) & ~repeated
    chosen = np.argsort(~usable, axis=1, kind="stable")[:, :negatives]
    complete = usable.sum(1) >= negatives
    found = np.full((len(positives), negatives), -1, np.int64)
    values = np.full((len(positives), negatives), -np.inf, np.float32)
    if complete.any():
        found[complete] = np.take_along_axis(candidates.rows[at.numpy()], chosen, 1)[complete]
        values[complete] = np.take_along_axis(best.numpy(), chosen, 1)[complete]
    why = np.where(too_similar.any(1).numpy(), REASONS.index("margin"), REASONS.index("cluster"))
    return {
        "rows": anchors.rows,
        "negatives": found,
        "cosines": np.concatenate([positives.astype(np.float32)[:, None], values], axis=1),
        "reasons": np.where(complete, KEPT, why).astype(np.uint8),
    }
