"""A start without supervision: vectors of units by what stands near them in the pairs' own sentences."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor

from paraforge.base.devices import torch_threads
from paraforge.base.interrupts import check_interrupt
from paraforge.embeddings.trainer.pair_store import PairStore

WINDOW = 5
"""Units on either side that count as near."""
SMOOTHING = 0.75
"""Exponent of the frequencies of contexts (Levy et al. 2015)."""
_BLOCK = 100_000
_ITERATIONS, _SPARE = 3, 10

FloatArray = npt.NDArray[np.float32]


def cooccurrence_table(store: PairStore, unit: str, dimension: int, seed: int) -> Tensor:
    """`U sqrt(S)` of the largest singular values of positive pointwise mutual information (Levy et al. 2015),
    (vocabulary, dimension) float32. The same to the bit on any number of threads.

    A unit that stands near none, and the unknown unit, are drawn at random with the standard deviation of the
    others. Elements beyond the number of units are 0.
    """
    positive = positive_pmi(_counts(store, unit), store.vocabularies[unit].unknown_id)
    table = np.zeros((positive.shape[0], dimension), np.float32)
    found = np.diff(positive.indptr) > 0
    if found.any():
        factors = _factors(positive, dimension, seed)
        table[:, : factors.shape[1]] = factors
    spread = float(table[found].std()) if found.any() else 1.0
    drawn = np.random.default_rng([seed, len(table), dimension]).standard_normal(
        (len(table), dimension), np.float32
    )
    table[~found] = drawn[~found] * np.float32(spread)
    return torch.from_numpy(table)


def _counts(store: PairStore, unit: str) -> Any:
    """How often two units stand near each other, each time 1 / their distance; (vocabulary, vocabulary)."""
    store = store.of_units([unit])
    size = len(store.vocabularies[unit])
    total: Any = csr_array((size, size), dtype=np.float32)
    for first in range(0, len(store), _BLOCK):
        check_interrupt()
        bags = store.select(np.arange(first, min(first + _BLOCK, len(store))))[unit]
        ids, sentences = bags.ids.numpy(), bags.sentences.numpy()
        for distance in range(1, WINDOW + 1):
            together = sentences[distance:] == sentences[:-distance]
            places = ids[:-distance][together], ids[distance:][together]
            weights = np.full(len(places[0]), 1 / distance, np.float32)
            total = total + csr_array((weights, places), shape=(size, size))
    return total + total.T


def positive_pmi(counts: Any, unknown: int) -> Any:
    """`max(0, ln(n(u, c) / (n(u) q(c))))`, q the contexts' shares of all `n(c)^SMOOTHING`, of a sparse matrix
    of counts without the unknown unit's; only what is above 0 is stored."""
    counts = counts.tocoo()
    known = (counts.row != unknown) & (counts.col != unknown)
    rows, columns, number = counts.row[known], counts.col[known], counts.data[known]
    size = counts.shape[0]
    sums = np.bincount(rows, number, minlength=size)
    smoothed = sums**SMOOTHING
    pmi = np.log(number * smoothed.sum() / (sums[rows] * smoothed[columns]))
    keep = pmi > 0
    values = pmi[keep].astype(np.float32)
    return csr_array((values, (rows[keep], columns[keep])), shape=(size, size))


def _factors(matrix: Any, dimension: int, seed: int) -> FloatArray:
    """`U sqrt(S)` of the largest singular values, (rows, at most dimension), by subspace iteration."""
    size = matrix.shape[0]
    width = min(dimension + _SPARE, size)
    basis = np.random.default_rng(seed).standard_normal((size, width), np.float32)
    transposed = matrix.T.tocsr()
    with torch_threads(1):
        for _ in range(_ITERATIONS):
            check_interrupt()
            basis = _orthonormal(transposed @ _orthonormal(matrix @ basis))
        basis = _orthonormal(matrix @ basis)
        left, values, _ = torch.linalg.svd(torch.from_numpy((transposed @ basis).T), full_matrices=False)
        left, values = left[:, :dimension], values[:dimension]
        factors = torch.from_numpy(basis) @ (left * values.sqrt())
    return np.asarray(factors.numpy(), np.float32)


def _orthonormal(columns: FloatArray) -> FloatArray:
    found: FloatArray = torch.linalg.qr(torch.from_numpy(columns)).Q.numpy()
    return found
