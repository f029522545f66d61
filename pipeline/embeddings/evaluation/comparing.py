"""Compares the sentences of pairs, with or without vectors, and correlates the results with judgments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring.cosine import cosine_of_rows
from paraforge.embeddings.evaluation.sets import SentencePairs


@runtime_checkable
class SentenceEmbedder(Protocol):
    """Embeds sentences, as `SentenceModel` and sentence-transformers' `SentenceTransformer` do."""

    def encode(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]:
        """Return vectors in the order of the texts, (texts, dimension) float32; zeros for a text without
        one."""


@runtime_checkable
class OwnSimilarity(SentenceEmbedder, Protocol):
    """An embedder whose vectors are not compared by cosine but, for example, by dot product."""

    def similarity_of_vectors(
        self, left: npt.NDArray[np.float32], right: npt.NDArray[np.float32], /
    ) -> npt.NDArray[np.float64]:
        """Return one number for the rows at the same index, (rows,) float64; higher is more similar."""


@runtime_checkable
class PairSimilarity(Protocol):
    """Compares the sentences of a pair without vectors, e.g. by word overlap."""

    def similarity(self, first: Sequence[str], second: Sequence[str], /) -> npt.NDArray[np.float64]:
        """Return one number per pair, (pairs,) float64; higher is more similar."""


@runtime_checkable
class Adaptive(Protocol):
    """Learns from the sentences of an evaluated set, without their scores, before it compares them."""

    def adapted_to(self, texts: Sequence[str], /) -> SentenceEmbedder | PairSimilarity:
        """Return a model that compares these sentences."""


Comparable = SentenceEmbedder | PairSimilarity | Adaptive


class Model(Protocol):
    """Any source of sentence vectors.

    dimension: dimension of a vector. uses_threads: whether a second thread inside torch's operations pays
        off.
    """

    @property
    def dimension(self) -> int: ...

    @property
    def uses_threads(self) -> bool: ...

    def encode(self, texts: str | Sequence[str] | Any, /) -> npt.NDArray[np.float32]:
        """Return vectors of texts (strings, or a pyarrow string column), (texts, dimension) float32, in
        order, or of a single text, (dimension,); zeros for a text without one."""

    def similarity(
        self, first: Sequence[str] | Any, second: Sequence[str] | Any, /
    ) -> npt.NDArray[np.float32]:
        """Return the similarity of each text of `first` with the one at the same index of `second`, (texts,):
        the cosine, or the model's own measure; 0 if one has no vector."""


class CosineModel:
    """Base of embedders whose vectors are compared by cosine."""

    def encode(self, texts: Any, /) -> npt.NDArray[np.float32]:
        """Return vectors of texts."""
        raise NotImplementedError

    def similarity(self, first: Any, second: Any, /) -> npt.NDArray[np.float32]:
        """Return the cosine of each text of `first` with the one at the same index of `second`; 0 if one has
        no vector."""
        return np.nan_to_num(cosine_of_rows(self.encode(first), self.encode(second)), nan=0.0)


@dataclass(frozen=True)
class OpenedModel:
    """A model to evaluate: `kind` describes it, and `words` is its only table of word vectors, if any."""

    name: str
    kind: str
    model: Comparable
    words: WordVectors | None = None


def similarities(model: Comparable, pairs: SentencePairs) -> npt.NDArray[np.float64]:
    """Return the model's similarity of both sentences of each pair, (pairs,) float64: the cosine, 0 for a
    zero vector, or its own measure. A model that adapts sees all sentences of `pairs` first."""
    if isinstance(model, Adaptive):
        return similarities(model.adapted_to(pairs.sentences), pairs)
    # Embedders can have their own method `similarity`.
    if not isinstance(model, SentenceEmbedder):
        return np.asarray(model.similarity(pairs.first, pairs.second), dtype=np.float64)
    vectors = np.asarray(model.encode(pairs.sentences), dtype=np.float32)
    if isinstance(model, OwnSimilarity):
        return model.similarity_of_vectors(vectors[: len(pairs)], vectors[len(pairs) :])
    cosine = cosine_of_rows(vectors[: len(pairs)], vectors[len(pairs) :])
    return np.nan_to_num(cosine.astype(np.float64), nan=0.0)


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
