"""Cells of similar vectors: spherical k-means on a sample, and the nearest cell of each vector."""

import numpy as np
from numpy.typing import NDArray

from paraforge.base.devices import torch_threads

Vectors = NDArray[np.float16] | NDArray[np.float32]
_ROUNDS = 8
# Vectors per block for nearest cells.
_VECTORS = 4096


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
    found = [(torch.from_numpy(block.astype(np.float32)) @ columns).argmax(1) for block in blocks]
    return np.asarray(torch.cat(found), np.int64)
