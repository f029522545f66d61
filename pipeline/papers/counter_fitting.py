"""Counter-fits word vectors (Mrksic et al. 2016): moves synonyms together and antonyms apart."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from paraforge.base.errors import InputError
from paraforge.base.word_vectors.vectors import FloatArray, WordVectors
from paraforge.embeddings.evaluation.word_lists import Pair
from paraforge.papers.lexicon_evaluation import read_reference_lexicon

STEPS, RATE = 20, 0.1
NEIGHBOR = 0.8
"""Smallest cosine of words whose similarity should be kept."""
_BLOCK = 2048
Pairs = npt.NDArray[np.int64]


def read_word_pairs(paths: Sequence[Path]) -> set[Pair]:
    """Read lists of word pairs, see `read_reference_lexicon`; both words are lower-cased and in order."""
    pairs = {pair for path in paths for pair in read_reference_lexicon(path).scores}
    return {(min(pair), max(pair)) for pair in pairs}


def counter_fit(
    vectors: WordVectors, synonyms: Collection[Pair], antonyms: Collection[Pair]
) -> tuple[WordVectors, dict[str, int]]:
    """Change the directions of word vectors, but not their lengths.

    Each step moves each word by `RATE` times the mean gradient of its constraints: a cosine of at most 0 for
    antonyms, of 1 for synonyms, and of at least the original one for neighbors. Words in no pair do not
    change.

    Returns the new vectors, and the number of used pairs of each kind.

    Raises InputError if no pair has two words with vectors.
    """
    near, apart = (_rows(vectors, pairs) for pairs in (synonyms, antonyms))
    used = np.unique(np.concatenate([near, apart]))
    if not len(used):
        raise InputError(
            "no pair of synonyms or antonyms has vectors of both words",
            remedy="Use a file with two words on each line.",
        )
    near, apart = np.searchsorted(used, near), np.searchsorted(used, apart)
    table = np.array(vectors.vectors, dtype=np.float32)
    lengths = np.linalg.norm(table[used], axis=1, keepdims=True)
    unit = _normalize(table[used])
    kept = _neighbors(unit)
    before = _cosines(unit, kept)
    pairs = np.concatenate([near, apart, kept])
    sign = np.repeat(np.array([1, -1, 1], np.float32), [len(near), len(apart), len(kept)])
    for _ in range(STEPS):
        cosines = _cosines(unit, pairs)
        active = np.concatenate(
            [
                np.ones(len(near), dtype=bool),
                cosines[len(near) : len(near) + len(apart)] > 0,
                cosines[len(near) + len(apart) :] < before,
            ]
        )
        unit = _normalize(unit + RATE * _mean_gradient(unit, pairs[active], sign[active], cosines[active]))
    table[used] = unit * lengths
    return WordVectors(vectors.words, table), {"synonyms": len(near), "antonyms": len(apart)}


def _rows(vectors: WordVectors, pairs: Collection[Pair]) -> Pairs:
    """Return the row numbers of the pairs, (pairs, 2), without pairs that lack a vector or repeat a word."""
    ordered = sorted(pairs)
    rows = vectors.known_rows([word for pair in ordered for word in pair]).reshape(-1, 2)
    return rows[(rows >= 0).all(axis=1) & (rows[:, 0] != rows[:, 1])]


def _normalize(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _cosines(unit: FloatArray, pairs: Pairs) -> FloatArray:
    cosines: FloatArray = np.einsum("ij,ij->i", unit[pairs[:, 0]], unit[pairs[:, 1]])
    return cosines


def _neighbors(unit: FloatArray) -> Pairs:
    """Return the pairs of rows with a cosine of at least `NEIGHBOR`, (pairs, 2)."""
    places = [np.empty((0, 2), np.int64)]
    for first in range(0, len(unit), _BLOCK):
        block = unit[first : first + _BLOCK] @ unit.T
        left, right = np.nonzero(block >= NEIGHBOR)
        later = right > left + first
        places.append(np.stack([left[later] + first, right[later]], axis=1))
    return np.concatenate(places)


def _mean_gradient(unit: FloatArray, pairs: Pairs, sign: FloatArray, cosines: FloatArray) -> FloatArray:
    """Return the mean over each word's pairs of sign times the gradient of its cosine, y - cos(x, y) x."""
    rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
    count = len(unit)
    signs = csr_array((np.tile(sign, 2), (rows, columns)), shape=(count, count))
    weights = np.bincount(rows, np.tile(sign * cosines, 2), minlength=count).astype(np.float32)
    number = np.maximum(np.bincount(rows, minlength=count), 1).astype(np.float32)
    gradient: FloatArray = (signs @ unit - weights[:, None] * unit) / number[:, None]
    return gradient
