"""What is kept of each piece while triplets are mined: vectors by cell, keys of what joins pairs, texts.

Cells are of similar vectors (spherical k-means on a sample): near texts are looked for in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraforge.base.devices import torch_threads
from paraforge.base.files import read_json_or_none
from paraforge.base.sealed import write_sealed_json
from paraforge.base.shards.lineage import mixed
from paraforge.corpus.selection.filters.near_duplicates import blank
from paraforge.products.lexicon.encoding import write_arrow, write_npy
from paraforge.products.triplets.encoder import Vectors, has_vector, open_encoder, unit_vectors
from paraforge.products.triplets.pieces import (
    KEPT,
    REASONS,
    SIDES,
    Piece,
    link_keys,
    part,
    same_sides,
    write_array,
)

if TYPE_CHECKING:
    from torch import Tensor

POSITIONS = ("anchor", "candidate")
"""The reference of a pair that can give a triplet, and every translation that has a vector."""
# Texts in a cell, about; and most cells, so that finding the nearest one stays cheap.
_ROWS_A_CELL = 1000
_MOST_CELLS = 4096
_SAMPLED_A_CELL = 32
_ROUNDS = 8
_BLOCK = 4096


@dataclass(frozen=True)
class Preparation:
    """What is done with each piece. threads: of an encoder that computes with torch."""

    encoder: str
    device: str
    threads: int
    same_lines: tuple[str, ...]
    seed: int
    directory: Path


def sample_piece(piece: Piece, index: int, share: float, setup: Preparation) -> None:
    """Write the vectors of about this share (0 to 1) of a piece's translations, chosen by row."""
    path = part(setup.directory, "sample", index, "npy")
    if path.is_file():
        return
    numbers = np.arange(piece.first, piece.first + piece.rows, dtype=np.uint64)
    drawn = mixed(numbers, f"triplets {setup.seed}").astype(np.float64) / 2.0**64 < share
    texts = pc.fill_null(piece.read(SIDES)["translation"].filter(pa.array(drawn)), "")
    vectors = _encoded(texts, setup)
    write_npy(vectors[has_vector(vectors)], path)


def prepare_piece(piece: Piece, index: int, setup: Preparation) -> int:
    """Write a piece's files, unless that is done already; gives the number of its anchors."""
    report = part(setup.directory, "piece", index, "json")
    if done := read_json_or_none(report):
        return int(done["anchor"])
    wanted = (*SIDES, "source_text", "source", "line")
    rows = piece.read([name for name in wanted if name in piece.columns])
    keys = link_keys(rows, setup.same_lines)
    texts = [pc.fill_null(rows[name], "") for name in SIDES]
    empty = [blank(column) for column in texts]
    vectors = [_encoded(column, setup) for column in texts]
    there = [has_vector(one) & ~without for one, without in zip(vectors, empty, strict=True)]
    reasons = np.select(
        [empty[0] | empty[1], same_sides(keys), ~(there[0] & there[1])],
        [REASONS.index(reason) for reason in ("blank", "same", "no_vector")],
        KEPT,
    ).astype(np.uint8)
    chosen = {"anchor": reasons == KEPT, "candidate": there[1]}
    centroids = np.load(setup.directory / "centroids.npy", allow_pickle=False)
    counts = {}
    for position, side, other in zip(POSITIONS, vectors, vectors[::-1], strict=True):
        numbers = np.flatnonzero(chosen[position])
        cells = nearest_cells(side[numbers], centroids)
        order = numbers[np.argsort(cells, kind="stable")]
        per_cell = np.bincount(cells, minlength=len(centroids)).astype(np.int32)
        # What the other side of its pair is near to, it is near to as well.
        both = np.concatenate([side[order], other[order]], axis=1)
        write_array(both, part(setup.directory, f"{position}-vectors", index))
        write_array(order + piece.first, part(setup.directory, f"{position}-rows", index))
        write_array(per_cell, part(setup.directory, f"{position}-cells", index))
        counts[position] = len(numbers)
        if position == "anchor":
            write_array(_cosines(side[order], vectors[1][order]), part(setup.directory, "positives", index))
    write_array(keys, part(setup.directory, "keys", index))
    write_array(reasons, part(setup.directory, "reasons", index))
    # Their offsets have 64 bits, as a piece may be of any size.
    column = pc.cast(texts[1].combine_chunks(), pa.large_string())
    write_arrow(pa.table({"text": column}), part(setup.directory, "texts", index, "arrow"))
    write_sealed_json(report, counts)
    return counts["anchor"]


def _encoded(texts: pa.ChunkedArray, setup: Preparation) -> Vectors:
    encoder = open_encoder(setup.encoder, setup.device)
    with torch_threads(setup.threads if encoder.uses_threads else 1):
        return unit_vectors(encoder, texts)


def _cosines(ones: Vectors, others: Vectors) -> NDArray[np.float32]:
    found: NDArray[np.float32] = np.einsum("ij,ij->i", ones.astype(np.float32), others.astype(np.float32))
    return found


def cells_for(rows: int, candidates: int) -> int:
    """How many cells: one where all texts are looked at anyway."""
    return 1 if rows <= candidates else max(2, min(_MOST_CELLS, rows // _ROWS_A_CELL))


def sampled_share(rows: int, cells: int) -> float:
    """Share of the rows, 0 to 1, that the cells are made of."""
    return min(1.0, _SAMPLED_A_CELL * cells / max(1, rows))


def find_centroids(sample: NDArray[np.float16], cells: int, seed: int) -> NDArray[np.float32]:
    """Centroids, (cells, dimension) float32 of length 1; fewer where the sample is smaller.

    Computed with one thread, so that they do not depend on how many there are.

    sample: (n, dimension), of length 1. seed: of the first centroids.
    """
    import torch

    vectors = torch.from_numpy(sample.astype(np.float32))
    generator = np.random.default_rng(seed)
    cells = min(cells, len(vectors))
    chosen = np.sort(generator.permutation(len(vectors))[:cells])
    centroids = vectors[torch.from_numpy(chosen)].clone()
    for _ in range(_ROUNDS if cells > 1 else 0):
        nearest = _nearest(vectors, centroids)
        sums = torch.zeros_like(centroids).index_add_(0, nearest, vectors)
        # A cell that nothing is nearest to begins again somewhere else.
        empty = torch.bincount(nearest, minlength=cells) == 0
        others = torch.from_numpy(generator.integers(0, len(vectors), int(empty.sum())))
        sums[empty] = vectors[others]
        centroids = torch.nn.functional.normalize(sums, dim=1)
    return np.asarray(centroids.numpy(), np.float32)


def nearest_cells(vectors: NDArray[np.float16], centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    """The cell of each vector, (n,)."""
    if len(centroids) <= 1:
        return np.zeros(len(vectors), np.int64)
    import torch

    found: NDArray[np.int64] = _nearest(torch.from_numpy(vectors), torch.from_numpy(centroids)).numpy()
    return found


def _nearest(vectors: Tensor, centroids: Tensor) -> Tensor:
    import torch

    columns = centroids.T.contiguous()
    blocks = [(block.float() @ columns).argmax(1) for block in vectors.split(_BLOCK)]
    return torch.cat(blocks) if blocks else torch.empty(0, dtype=torch.int64)
