"""The initial vectors of a training: random, from a table of word vectors, or from the units that occur near
each other in the pairs' sentences."""

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor

from paraforge.base.devices import torch_threads
from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.trainer.pair_store import PairStore

logger = logging.getLogger(__name__)

WINDOW = 5
"""Number of neighboring units on each side that are counted."""
SMOOTHING = 0.75
"""Exponent of the frequencies of contexts (Levy et al. 2015)."""
_BLOCK = 100_000
_ITERATIONS, _SPARE = 3, 10

FloatArray = npt.NDArray[np.float32]


def cooccurrence_table(store: PairStore, unit: str, dimension: int, seed: int) -> Tensor:
    """Return `U sqrt(S)` for the largest singular values of positive pointwise mutual information (Levy et
    al. 2015), (vocabulary, dimension) float32. The result does not depend on the number of threads.

    Units without neighbors, and the unknown unit, get random vectors with the standard deviation of the
    others. Elements beyond the number of units are 0.
    """
    positive = positive_pmi(_counts(store, unit), store.vocabularies[unit].unknown_id)
    table = np.zeros((positive.shape[0], dimension), np.float32)
    has_neighbors = np.diff(positive.indptr) > 0
    if has_neighbors.any():
        factors = _factors(positive, dimension, seed)
        table[:, : factors.shape[1]] = factors
    spread = float(table[has_neighbors].std()) if has_neighbors.any() else 1.0
    drawn = np.random.default_rng([seed, len(table), dimension]).standard_normal(
        (len(table), dimension), np.float32
    )
    table[~has_neighbors] = drawn[~has_neighbors] * np.float32(spread)
    return torch.from_numpy(table)


def _counts(store: PairStore, unit: str) -> Any:
    """Return the sum of 1 / distance over all occurrences of two units near each other; (vocabulary,
    vocabulary)."""
    store = store.of_units([unit])
    size = len(store.vocabularies[unit])
    total: Any = csr_array((size, size), dtype=np.float32)
    for first in range(0, len(store), _BLOCK):
        bags = store.select(np.arange(first, min(first + _BLOCK, len(store))))[unit]
        ids, sentences = bags.ids.numpy(), bags.sentences.numpy()
        for distance in range(1, WINDOW + 1):
            together = sentences[distance:] == sentences[:-distance]
            places = ids[:-distance][together], ids[distance:][together]
            weights = np.full(len(places[0]), 1 / distance, np.float32)
            total = total + csr_array((weights, places), shape=(size, size))
    return total + total.T


def positive_pmi(counts: Any, unknown: int) -> Any:
    """Return the positive values of `ln(n(u, c) / (n(u) q(c)))` as a sparse matrix, where q are the contexts'
    shares of all `n(c)^SMOOTHING`. The counts are a sparse matrix without the unknown unit."""
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
    """Return `U sqrt(S)` for the largest singular values, (rows, at most dimension), by subspace
    iteration."""
    size = matrix.shape[0]
    width = min(dimension + _SPARE, size)
    basis = np.random.default_rng(seed).standard_normal((size, width), np.float32)
    transposed = matrix.T.tocsr()
    with torch_threads(1):
        for _ in range(_ITERATIONS):
            basis = _orthonormal(transposed @ _orthonormal(matrix @ basis))
        basis = _orthonormal(matrix @ basis)
        left, values, _ = torch.linalg.svd(torch.from_numpy((transposed @ basis).T), full_matrices=False)
        left, values = left[:, :dimension], values[:dimension]
        factors = torch.from_numpy(basis) @ (left * values.sqrt())
    return np.asarray(factors.numpy(), np.float32)


def _orthonormal(columns: FloatArray) -> FloatArray:
    basis: FloatArray = torch.linalg.qr(torch.from_numpy(columns)).Q.numpy()
    return basis


def random_table(rows: int, dimension: int, scale: float, seed: int) -> Tensor:
    """Draw normal numbers with standard deviation `scale`, (rows, dimension) float32. A step of Adam moves an
    element by about the learning rate, so it takes about scale / rate steps to leave the start."""
    numbers = np.random.default_rng([seed, rows, dimension]).standard_normal((rows, dimension), np.float32)
    return torch.from_numpy(numbers * np.float32(scale))


def initial_table(part: VectorParameters, counts: npt.NDArray[np.int64], seed: int) -> Tensor:
    """Return the random start from an encoder's parameters, for units with these counts."""
    table = random_table(len(counts), part.dimension, part.initial_scale, seed)
    return _weighted_by_frequency(table, part, counts)


def starting_table(part: VectorParameters, store: PairStore, seed: int) -> Tensor:
    """Return the initial table that an encoder's parameters choose: random, or from co-occurrences in the
    pairs."""
    counts = store.counts(part.unit)
    if getattr(part, "initial", "random") == "random":
        return initial_table(part, counts, seed)
    return weighted_table(cooccurrence_table(store, part.unit, part.dimension, seed), part, counts)


def weighted_table(table: Tensor, part: VectorParameters, counts: npt.NDArray[np.int64]) -> Tensor:
    """Apply the scale and the frequency weights of a random start to a table, in place."""
    table *= part.initial_scale / table.std()
    return _weighted_by_frequency(table, part, counts)


def _weighted_by_frequency(table: Tensor, part: VectorParameters, counts: npt.NDArray[np.int64]) -> Tensor:
    """Scale each unit's vector by a / (a + p) (Arora 2017), p its probability, if an encoder's parameters
    have an a, in place.

    This makes the untrained mean a frequency-weighted bag of units under a random projection.
    """
    if (a := part.initial_frequency) is not None:
        table *= torch.from_numpy((a / (a + counts / max(1, int(counts.sum())))).astype(np.float32))[:, None]
    return table


def table_from_vectors(
    vocabulary: Vocabulary, vectors: WordVectors, seed: int, path: str | None = None
) -> Tensor:
    """Return each unit's vector from a table, (vocabulary, dimension) float32; a unit without one starts with
    the unknown word's, or at random with the standard deviation of those found.

    path: the vectors' file, for the error.

    Raises InputError if no unit has a vector, or only zeros, which training would not change.
    """
    rows = vectors.known_rows(vocabulary.units)
    has_vector = rows >= 0
    known = np.asarray(vectors.vectors[rows[has_vector]], dtype=np.float32)
    if not known.any():
        what = "only zeros for" if has_vector.any() else "none of"
        raise InputError(
            f"the initial vectors have {what} the words to train",
            path,
            remedy="Use vectors for lowercase English words.",
        )
    with np.errstate(over="ignore"):  # the training refuses vectors that are so long
        deviation = float(known.std())
    table = random_table(len(vocabulary), vectors.dimension, deviation, seed).numpy()
    if vectors.unknown_row is not None:
        table[:] = vectors.vectors[vectors.unknown_row]
    table[has_vector] = known
    logger.info("%d of %d units start from given vectors", int(has_vector.sum()), len(vocabulary))
    return torch.from_numpy(table)
