"""Cells of similar vectors: spherical k-means on a sample, and the nearest cell of each vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paraforge.base.devices import torch_threads

if TYPE_CHECKING:
    from torch import Tensor

Vectors = NDArray[np.float16] | NDArray[np.float32]
_ROUNDS = 8
# Vectors per block for nearest cells.
_VECTORS = 4096


def find_centroids(sample: Vectors, cells: int, seed: int) -> NDArray[np.float32]:
    """Return centroids, (cells, dimension) float32 of length 1; fewer if the sample is smaller.

    Computed with one thread, so that they do not depend on the number of threads.

    sample: (n, dimension), of length 1. seed: seed for the first centroids.
    """
    import torch

    if cells <= 1 or len(sample) == 0:
        return np.zeros((1, sample.shape[1]), np.float32)
    vectors = torch.from_numpy(sample.astype(np.float32))
    generator = np.random.default_rng(seed)
    cells = min(cells, len(vectors))
    chosen = np.sort(generator.permutation(len(vectors))[:cells])
    centroids = vectors[torch.from_numpy(chosen)].clone()
    with torch_threads(1):
        for _ in range(_ROUNDS):
            nearest = _nearest(vectors, centroids)
            sums = torch.zeros_like(centroids).index_add_(0, nearest, vectors)
            # An empty cell restarts elsewhere.
            empty = torch.bincount(nearest, minlength=cells) == 0
            sums[empty] = vectors[torch.from_numpy(generator.integers(0, len(vectors), int(empty.sum())))]
            centroids = torch.nn.functional.normalize(sums, dim=1)
    return np.asarray(centroids.numpy(), np.float32)


def nearest_cells(vectors: Vectors, centroids: NDArray[np.float32]) -> NDArray[np.int16]:
    """Return the cell of each vector, (n,)."""
    if len(centroids) <= 1 or not len(vectors):
        return np.zeros(len(vectors), np.int16)
    import torch

    found = _nearest(torch.from_numpy(np.ascontiguousarray(vectors)), torch.from_numpy(centroids))
    return np.asarray(found.numpy(), np.int16)


def _nearest(vectors: Tensor, centroids: Tensor) -> Tensor:
    import torch

    columns = centroids.T.contiguous()
    return torch.cat([(block.float() @ columns).argmax(1) for block in vectors.split(_VECTORS)])
