"""Compares the sentences of pairs, with or without vectors, and correlates the results with judgments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring.cosine import cosine_of_rows


class Comparable(Protocol):
    """Compares the sentences of pairs, by their vectors or in another way, such as word overlap."""

    def similarity(self, first: Sequence[str], second: Sequence[str], /) -> npt.NDArray[np.floating]:
        """Return one number per pair, (pairs,); higher is more similar.

        A model that learns from the compared sentences sees all of them first.
        """


class Model(ABC):
    """Base of all models that embed sentences. Vectors are compared by cosine, unless a subclass has another
    measure.

    dimension: dimension of a vector. uses_threads: whether a second thread inside torch's operations pays
        off.
    """

    dimension: int
    uses_threads: bool

    def encode(self, texts: str | Sequence[str] | Any, /) -> npt.NDArray[np.float32]:
        """Return vectors of texts (strings, or a pyarrow string column), (texts, dimension) float32, in
        order, or of a single text, (dimension,); zeros for a text without one."""
        if isinstance(texts, str):
            return self.encode([texts])[0]
        is_column = isinstance(texts, pa.Array | pa.ChunkedArray)
        return self.vectors_of(texts if is_column else pa.array(texts, pa.string()))

    @abstractmethod
    def vectors_of(self, column: Any) -> npt.NDArray[np.float32]:
        """Return the vectors of a pyarrow string column."""

    def adapted_to(self, texts: Sequence[str] | Any) -> Model:
        """Return the model for a set of texts: itself, unless it learns from the texts that it compares."""
        return self

    def similarity(self, first: Any, second: Any, /) -> npt.NDArray[np.floating]:
        """Return the similarity of each text of `first` with the one at the same index of `second`, (texts,):
        the cosine, or the model's own measure; 0 if one has no vector."""
        first, second = strings_of(first), strings_of(second)
        vectors = self.encode(first + second)
        return self.similarity_of_vectors(vectors[: len(first)], vectors[len(first) :])

    def similarity_of_vectors(
        self, left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.floating]:
        """Return the cosine of the rows at the same index, (rows,); 0 if one is a zero vector."""
        return np.nan_to_num(cosine_of_rows(left, right), nan=0.0)


def strings_of(texts: Sequence[str] | Any) -> list[str]:
    """Return texts (strings, or a pyarrow string column) as a list. Raises ValueError for a single text."""
    if isinstance(texts, str):
        raise ValueError("a single text: pass two lists of the same length")
    return texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else list(texts)


@dataclass(frozen=True)
class OpenedModel:
    """A model to evaluate: `kind` describes it, and `words` is its only table of word vectors, if any."""

    name: str
    kind: str
    model: Comparable
    words: WordVectors | None = None


def pearson(gold: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> float | None:
    """Return Pearson's r x 100, -100 to 100; None for fewer than two pairs, or a side that is constant or
    not finite."""
    from scipy.stats import pearsonr

    return None if _is_undefined(gold, values) else 100 * float(pearsonr(gold, values).statistic)


def spearman(gold: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> float | None:
    """Return Spearman's rho x 100, with mean ranks for equal values; None as for :func:`pearson`."""
    from scipy.stats import spearmanr

    return None if _is_undefined(gold, values) else 100 * float(spearmanr(gold, values).statistic)


def mean(values: list[float | None]) -> float | None:
    """Return the unweighted mean; None without values or if one is None."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def _is_undefined(gold: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> bool:
    return len(gold) < 2 or not all(0 < np.ptp(side) < np.inf for side in (gold, values))
