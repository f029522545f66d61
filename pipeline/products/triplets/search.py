"""Finds negatives: each anchor against the texts of the nearest cells, and some from everywhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paraforge.base.compiled import compiled
from paraforge.base.devices import torch_threads
from paraforge.base.sealed import sealed_path
from paraforge.base.shards.clusters import read_clusters
from paraforge.base.shards.lineage import mixed
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.products.triplets.pieces import KEPT, REASONS, part, read_array
from paraforge.products.triplets.preparation import POSITIONS

ANCHORS_PER_JOB = 16_384
# Where nothing near is allowed, something from afar is: so many texts, in runs of so many neighbours.
_FAR = 1024
_RUN = 32
# Anchors and candidates whose cosines are computed at once: some megabytes.
_ANCHORS, _CANDIDATES = 512, 2048
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
Similar = tuple[Floats, Floats, Numbers]
"""Of anchors (rows) and candidates (columns) the cosines, and the highest of either side of an anchor's pair
with either of a candidate's; the candidates' clusters."""
Found = tuple[NDArray[np.float64], Numbers, Floats, Numbers, Numbers, NDArray[np.bool_]]
"""Of anchors what candidates have to be below, and their clusters; cosines, places and clusters of what was
found, (anchors, negatives), sorted by cosine; whether something was too similar."""


@dataclass(frozen=True)
class NeighbourSearch:
    """What is searched for, and where. dimension: of the vectors. rows: of the corpus."""

    directory: Path
    pieces: int
    rows: int
    dimension: int
    parameters: TripletsParameters


@dataclass(frozen=True)
class _Layout:
    """Where the vectors of each cell are in each piece's file.

    centroids: (cells, dimension). ends: of anchors and of candidates, (pieces, cells + 1), running counts.
    """

    centroids: Floats
    ends: dict[str, Numbers]


@lru_cache(maxsize=1)
def _layout(directory: Path, pieces: int) -> _Layout:
    ends = {}
    for position in POSITIONS:
        counts = [read_array(part(directory, f"{position}-cells", n), np.int32) for n in range(pieces)]
        ends[position] = np.pad(np.cumsum(np.stack(counts), 1, dtype=np.int64), ((0, 0), (1, 0)))
    return _Layout(np.load(directory / "centroids.npy", allow_pickle=False), ends)


def search_anchors(first: int, last: int, job: int, search: NeighbourSearch) -> int:
    """Find negatives of anchors ``first`` to ``last - 1``, counted cell by cell; gives their number.

    Writes `found-JOB.npz`: `rows` of the anchors; `negatives`, (anchors, n) rows, -1 where there is none;
    `cosines`, (anchors, 1 + n), of the positive and of the negatives; `reasons` why there are too few.
    """
    path = part(search.directory, "found", job, "npz")
    if path.is_file():
        return 0
    layout = _layout(search.directory, search.pieces)
    before = np.pad(np.cumsum(np.diff(layout.ends["anchor"], axis=1).sum(0)), (1, 0))
    found: list[dict[str, NDArray[Any]]] = []
    with torch_threads(1):  # so that no sum depends on how many there are
        for cell in range(len(layout.centroids)):
            start, stop = max(first, int(before[cell])), min(last, int(before[cell + 1]))
            if start < stop:
                anchors = _anchors(cell, start - int(before[cell]), stop - int(before[cell]), layout, search)
                found.append(_search_cell(cell, anchors, layout, search))
    with sealed_path(path) as temporary, temporary.open("wb") as file:
        arrays: dict[str, Any] = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        np.savez(file, allow_pickle=False, **arrays)
    return last - first


@dataclass(frozen=True)
class _Texts:
    """Vectors (n, 2 * dimension) of texts, each followed by that of the other side of its pair; their rows,
    and of anchors the cosine with the positive."""

    vectors: Floats
    rows: Numbers
    positives: Floats


def _anchors(cell: int, first: int, last: int, layout: _Layout, search: NeighbourSearch) -> _Texts:
    """Anchors of a cell, numbered within it."""
    ends = layout.ends["anchor"]
    slices = []
    passed = 0
    for piece in range(search.pieces):
        size = int(ends[piece, cell + 1] - ends[piece, cell])
        start, stop = max(first - passed, 0), min(last - passed, size)
        if start < stop:
            slices.append((piece, int(ends[piece, cell]) + start, stop - start))
        passed += size
    return _read("anchor", slices, search)


def _read(position: str, slices: Sequence[tuple[int, int, int]], search: NeighbourSearch) -> _Texts:
    """Slices of pieces: piece, first, how many."""
    directory, width = search.directory, 2 * search.dimension
    vectors = [np.zeros((0, width), np.float16)]
    rows = [np.zeros(0, np.int64)]
    positives = [np.zeros(0, np.float32)]
    for piece, first, number in slices:
        path = part(directory, f"{position}-vectors", piece)
        vectors.append(read_array(path, np.float16, first, number, width))
        rows.append(read_array(part(directory, f"{position}-rows", piece), np.int64, first, number))
        if position == "anchor":
            positives.append(read_array(part(directory, "positives", piece), np.float32, first, number))
    whole = np.concatenate(vectors).astype(np.float32)
    return _Texts(whole, np.concatenate(rows), np.concatenate(positives))


def _near(cell: int, layout: _Layout, search: NeighbourSearch) -> Iterator[tuple[int, int, int]]:
    """Slices of the cells that are nearest to a cell, itself first, until there are enough candidates. Of a
    cell that is larger than that some of each piece are taken."""
    ends = layout.ends["candidate"]
    sizes = np.diff(ends, axis=1)
    closeness = layout.centroids @ layout.centroids[cell]
    closeness[cell] = np.inf
    left = search.parameters.candidates
    for near in np.argsort(-closeness, kind="stable").tolist():
        total = int(sizes[:, near].sum())
        if total == 0:
            continue
        taken = sizes[:, near] if total <= left else -(-sizes[:, near] * left // total)
        for piece in np.flatnonzero(taken).tolist():
            yield piece, int(ends[piece, near]), int(taken[piece])
        left -= total
        if left <= 0:
            return


def _far(cell: int, number: int, layout: _Layout, search: NeighbourSearch) -> Iterator[tuple[int, int, int]]:
    """Slices from anywhere: about this number of texts, other ones for each cell."""
    before = np.pad(np.cumsum(layout.ends["candidate"][:, -1]), (1, 0))
    generator = np.random.default_rng([search.parameters.seed, cell])
    for first in generator.integers(0, before[-1], -(-number // _RUN)).tolist():
        piece = int(np.searchsorted(before, first, side="right")) - 1
        yield piece, first - int(before[piece]), min(_RUN, int(before[piece + 1]) - first)


def _search_cell(
    cell: int, anchors: _Texts, layout: _Layout, search: NeighbourSearch
) -> dict[str, NDArray[Any]]:

    everything = int(layout.ends["candidate"][:, -1].sum()) <= search.parameters.candidates
    slices: list[tuple[int, int, int]] = []
    if everything or search.parameters.strategy == "hardest":
        slices += _near(cell, layout, search)
    if not everything:
        slices += _far(cell, _FAR if slices else search.parameters.candidates, layout, search)
    texts = _read("candidate", slices, search)
    clusters = read_clusters(search.directory / "clusters.bin", search.rows)
    chosen = _Chosen(anchors, np.asarray(clusters[anchors.rows]), search)
    candidates = _sides(texts.vectors)
    of_candidates = np.asarray(clusters[texts.rows])
    shuffled = None
    if search.parameters.strategy == "random":
        shuffled = np.random.default_rng([search.parameters.seed, cell, 1]).permutation(len(texts.rows))
    for first in range(0, len(anchors.rows), _ANCHORS):
        block = _sides(anchors.vectors[first : first + _ANCHORS])
        if shuffled is not None:
            chosen.any(first, _similar(block, candidates, of_candidates), shuffled)
            continue
        for start in range(0, len(texts.rows), _CANDIDATES):
            part_of = slice(start, start + _CANDIDATES)
            sides = [side[part_of] for side in candidates]
            chosen.hardest(first, _similar(block, sides, of_candidates[part_of]), start)
    return chosen.result(texts.rows)


def _sides(vectors: Floats) -> list[Any]:
    """Tensors of what :class:`_Texts` has side by side."""
    import torch

    return [torch.from_numpy(np.ascontiguousarray(side)) for side in np.split(vectors, 2, axis=1)]


def _similar(anchors: Sequence[Any], candidates: Sequence[Any], clusters: Numbers) -> Similar:
    import torch

    cosines = [anchor @ candidate.T for anchor in anchors for candidate in candidates]
    return cosines[0].numpy(), reduce(torch.maximum, cosines).numpy(), clusters


class _Chosen:
    """The negatives of anchors, as more and more candidates have been looked at."""

    def __init__(self, anchors: _Texts, clusters: Numbers, search: NeighbourSearch) -> None:
        self._anchors = anchors
        self._clusters = clusters
        shape = (len(anchors.rows), search.parameters.negatives)
        self._cosines = np.full(shape, -np.inf, np.float32)
        self._places = np.full(shape, -1, np.int64)
        self._found = np.full(shape, -1, np.int64)
        self._too_similar = np.zeros(shape[0], np.bool_)
        positives = anchors.positives.astype(np.float64)
        # As (1 - margin) * cosine, and below the cosine where that is negative.
        self._limits = positives - search.parameters.margin * np.abs(positives)
        self._seed = search.parameters.seed

    def _of(self, first: int, rows: int) -> Found:
        part_of = slice(first, first + rows)
        return (
            self._limits[part_of],
            self._clusters[part_of],
            self._cosines[part_of],
            self._places[part_of],
            self._found[part_of],
            self._too_similar[part_of],
        )

    def hardest(self, first: int, similar: Similar, start: int) -> None:
        """Keep the most similar of further candidates; ``start``: place of the first of them."""
        keep_most_similar(similar, start, self._of(first, len(similar[0])))

    def any(self, first: int, similar: Similar, order: Numbers) -> None:
        """Take the first allowed candidates in an order, from a place on that the anchor's row decides."""
        rows = self._anchors.rows[first : first + len(similar[0])]
        drawn = mixed(rows.astype(np.uint64), f"negatives {self._seed}") % np.uint64(max(1, len(order)))
        begins = drawn.astype(np.int64)
        take_allowed(similar, order, begins, self._of(first, len(rows)))

    def result(self, rows: Numbers) -> dict[str, NDArray[Any]]:
        """By name what a job writes; ``rows``: of the candidates."""
        complete = (self._places >= 0).all(1)
        why = np.where(self._too_similar, REASONS.index("margin"), REASONS.index("cluster"))
        negatives = np.where(self._places >= 0, rows[self._places] if len(rows) else -1, -1)
        return {
            "rows": self._anchors.rows,
            "negatives": negatives,
            "cosines": np.concatenate([self._anchors.positives[:, None], self._cosines], axis=1),
            "reasons": np.where(complete, KEPT, why).astype(np.uint8),
        }


@compiled
def keep_most_similar(similar: Similar, start: int, kept: Found) -> None:
    """Of each row's candidates (columns, counted from ``start``) keep the most similar ones that are below
    its limit, of different clusters and not of its own."""
    cosines, highest, clusters = similar
    limits, own, best, places, found, too_similar = kept
    last = best.shape[1] - 1
    for row in range(cosines.shape[0]):
        least = best[row, last]
        for column in range(cosines.shape[1]):
            cosine = cosines[row, column]
            if cosine <= least:
                continue
            cluster = clusters[column]
            if cluster == own[row]:
                continue
            if highest[row, column] >= limits[row]:
                too_similar[row] = True
                continue
            place = last
            for other in range(last + 1):
                if found[row, other] == cluster:
                    place = other
            if found[row, place] == cluster and cosine <= best[row, place]:
                continue
            while place > 0 and best[row, place - 1] < cosine:
                best[row, place] = best[row, place - 1]
                places[row, place] = places[row, place - 1]
                found[row, place] = found[row, place - 1]
                place -= 1
            best[row, place] = cosine
            places[row, place] = start + column
            found[row, place] = cluster
            least = best[row, last]


@compiled
def take_allowed(similar: Similar, order: Numbers, begins: Numbers, kept: Found) -> None:
    """As :func:`keep_most_similar`, but the first allowed candidates in an order, from `begins` on."""
    cosines, highest, clusters = similar
    limits, own, best, places, found, too_similar = kept
    for row in range(cosines.shape[0]):
        filled = 0
        for step in range(len(order)):
            column = order[(begins[row] + step) % len(order)]
            cluster = clusters[column]
            known = cluster == own[row]
            for other in range(filled):
                known = known or found[row, other] == cluster
            if known:
                continue
            if highest[row, column] >= limits[row]:
                too_similar[row] = True
                continue
            best[row, filled] = cosines[row, column]
            places[row, filled] = column
            found[row, filled] = cluster
            filled += 1
            if filled == best.shape[1]:
                break
