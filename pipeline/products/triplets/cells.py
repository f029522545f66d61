"""Cells of similar vectors (spherical k-means on a sample): where near texts are looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

# Texts in a cell, about; and most cells, so that finding the nearest one stays cheap.
_ROWS_A_CELL = 1000
_MOST_CELLS = 4096
_SAMPLED_A_CELL = 32
_ROUNDS = 8
_BLOCK = 4096


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
