"""The vectors that training starts from: random, or from a table of word vectors."""

import logging

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from paraforge.base.errors import InputError
from paraforge.base.text.vocabulary import Vocabulary
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.parameters import VectorParameters
from paraforge.embeddings.trainer.cooccurrence import cooccurrence_table
from paraforge.embeddings.trainer.pair_store import PairStore

logger = logging.getLogger(__name__)


def random_table(rows: int, dimension: int, scale: float, seed: int) -> Tensor:
    """Normal numbers with standard deviation `scale`, (rows, dimension) float32. Adam moves an element by
    about its learning rate: scale / rate is how many steps it takes to leave the start."""
    numbers = np.random.default_rng([seed, rows, dimension]).standard_normal((rows, dimension), np.float32)
    return torch.from_numpy(numbers * np.float32(scale))


def frequency_weights(counts: npt.NDArray[np.int64], a: float) -> npt.NDArray[np.float32]:
    """a / (a + p) of every unit (Arora 2017), p its probability; a unit that never occurs has the largest.

    Random vectors scaled by these make the untrained mean a frequency-weighted bag of units under a random
    projection.

    counts: occurrences of each unit, int64 (vocabulary,), not all 0.
    """
    probability = counts / counts.sum()
    return (a / (a + probability)).astype(np.float32)


def initial_table(part: VectorParameters, counts: npt.NDArray[np.int64], seed: int) -> Tensor:
    """The random start that an encoder's parameters ask for, of units that occur so often."""
    table = random_table(len(counts), part.dimension, part.initial_scale, seed)
    return _weighted_by_frequency(table, part, counts)


def starting_table(part: VectorParameters, store: PairStore, seed: int) -> Tensor:
    """The start that an encoder's parameters ask for, random or by what stands near a unit in the pairs."""
    counts = store.counts(part.unit)
    if getattr(part, "initial", "random") == "random":
        return initial_table(part, counts, seed)
    return weighted_table(cooccurrence_table(store, part.unit, part.dimension, seed), part, counts)


def weighted_table(table: Tensor, part: VectorParameters, counts: npt.NDArray[np.int64]) -> Tensor:
    """A table, changed in place, with the scale and the weights by frequency of a random start."""
    table *= part.initial_scale / table.std()
    return _weighted_by_frequency(table, part, counts)


def _weighted_by_frequency(table: Tensor, part: VectorParameters, counts: npt.NDArray[np.int64]) -> Tensor:
    """A table, changed in place, with the weights that an encoder's parameters ask for."""
    if part.initial_frequency is not None:
        table *= torch.from_numpy(frequency_weights(counts, part.initial_frequency))[:, None]
    return table


def table_from_vectors(vocabulary: Vocabulary, vectors: WordVectors, seed: int) -> Tensor:
    """Each unit's vector from a table, (vocabulary, dimension) float32; a unit without one starts with the
    unknown word's, or at random with the standard deviation of those found.

    Raises InputError where not a single unit has a vector, or a vector is not finite.
    """
    rows = vectors.known_rows(vocabulary.units)
    found = rows >= 0
    if not found.any():
        raise InputError(
            "the initial vectors have none of the words to train",
            remedy="Give vectors of lower-cased English words.",
        )
    known = np.asarray(vectors.vectors[rows[found]], dtype=np.float32)
    if not np.isfinite(known).all():
        raise InputError("the initial vectors hold NaN or infinity")
    table = random_table(len(vocabulary), vectors.dimension, float(known.std()), seed).numpy()
    if vectors.unknown_row is not None:
        table[:] = vectors.vectors[vectors.unknown_row]
    table[found] = known
    logger.info("%d of %d units start from given vectors", int(found.sum()), len(vocabulary))
    return torch.from_numpy(table)


def check_finite(module: nn.Module) -> None:
    """Raise InputError where a parameter holds NaN or infinity before a training begins."""
    for name, value in module.named_parameters():
        if not bool(torch.isfinite(value).all()):
            raise InputError(f"the initial values of {name} hold NaN or infinity")
