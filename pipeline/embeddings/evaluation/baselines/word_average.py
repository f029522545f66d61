"""Sentence vectors by averaging word vectors: plain, weighted by smooth inverse frequency (Arora 2017) or
inverse document frequency, and without common components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.text.idf import Background, background_of_frequencies, count_documents
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.tokens import tokenize_column, tokenize_columns
from paraforge.base.word_vectors.vectors import FloatArray, WordVectors
from paraforge.embeddings.evaluation.corpora import corpus_blocks
from paraforge.embeddings.evaluation.similarity.comparing import CosineModel

SIF_A = 1e-3
"""a of Arora 2017 in all of its tables."""


class Weighting(Protocol):
    """Gives each word a weight."""

    @property
    def kind(self) -> str:
        """How files name it."""

    @property
    def background(self) -> Background:
        """The counts that the weights come from."""

    def weights(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """One weight a word, (words,) float64, not negative."""


@dataclass(frozen=True)
class SmoothInverseFrequency:
    """a / (a + p(w)); a word that the counts lack has p = 0 and so the weight 1. Lists without whole kinds of
    words are first completed from a text, see `Background.completed`.

    background: running words: `documents` is their number, `counts` how often each occurs.
    """

    background: Background
    a: float = SIF_A
    kind: ClassVar[str] = "sif"

    def __post_init__(self) -> None:
        if not 0 < self.a < np.inf:
            raise InputError(f"a is {self.a}; it has to be greater than 0")

    def weights(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """0 to 1."""
        return self.a / (self.a + _counts(self.background, words) / self.background.documents)


@dataclass(frozen=True)
class InverseDocumentFrequency:
    """ln((1 + N) / (1 + N_w)) of N sentences (Arora 2017, Eq. 7).

    background: sentences: `documents` is their number, `counts` how many have each word.
    """

    background: Background
    kind: ClassVar[str] = "idf"

    def weights(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """0 for a word in every sentence."""
        return np.log((1 + self.background.documents) / (1 + _counts(self.background, words)))


def _counts(background: Background, words: Sequence[str]) -> npt.NDArray[np.float64]:
    get = background.counts.get
    return np.fromiter((get(word, 0) for word in words), np.float64, len(words))


def word_counts(path: Path) -> Background:
    """Count words: from a file of words and counts (`the 167485604`), or on both sides of a corpus' training
    pairs, which leaves out held-out splits and what is rejected or failed.

    Raises InputError with file and line where there is no word, or not a word and a positive whole number.
    """
    if path.is_file():
        return background_of_frequencies(path, sentences=None)
    return count_pairs(corpus_blocks(path), path.name)


def count_pairs(blocks: Iterable[PairBlock], name: str) -> Background:
    """How often each word occurs on either side of pairs; InputError without any. Memory grows with the
    vocabulary."""
    counts: dict[str, int] = {}
    for block in blocks:
        check_interrupt()
        for side in tokenize_columns(block.left, block.right):
            for token, count in side.occurrences().items():
                counts[token] = counts.get(token, 0) + count
    total = sum(counts.values())
    if not total:
        raise InputError(f"not a word to count in {name}")
    return Background(name, total, counts)


def sentence_counts(texts: Sequence[str], name: str) -> Background:
    """How many of these sentences contain each word, for an inverse document frequency."""
    return Background(name, len(texts), count_documents(tokenize_column(pa.array(texts, pa.string()))))


def completed_from(weighting: Weighting | None, texts: Sequence[str]) -> Weighting | None:
    """The weighting with p(w) of words that its list lacks estimated from texts (`Background.completed`)."""
    if not isinstance(weighting, SmoothInverseFrequency) or not weighting.background.partial:
        return weighting
    column = tokenize_column(pa.array(texts, pa.string()))
    return replace(weighting, background=weighting.background.completed(column))


# Bounds the memory of what is worked on: 4096 x 300 float32 are 5 MB, and the words of 4096 sentences.
_BLOCK_ROWS: Final = 4096
_ROUNDING: Final = 1e-6


class WordAverage(CosineModel):
    """`v_s = 1/|s| * sum of weight(w) * v_w`, from which the projections on the components are subtracted.

    Without weighting and components it is plain averaging; with :class:`SmoothInverseFrequency` and
    one component it is SIF (Arora 2017, Algorithm 1). A word without a vector takes the unknown word's where
    the table has one, with its own weight; otherwise it is left out of the sum and of |s|.
    """

    uses_threads = False

    def __init__(
        self, vectors: WordVectors, weighting: Weighting | None = None, components: FloatArray | None = None
    ) -> None:
        """vectors: in memory or memory-mapped; only the rows of the words that occur are read.
        weighting: None weighs all words the same.
        components: (components, dimension) float32, orthonormal rows, as :func:`common_components` gives.
        """
        self.vectors = vectors
        self.weighting = weighting
        self.components = np.empty((0, vectors.dimension), np.float32) if components is None else components

    @property
    def dimension(self) -> int:
        """Elements of a sentence's vector."""
        return self.vectors.dimension

    @property
    def words(self) -> list[str]:
        """Those that have a vector."""
        return [word for word in self.vectors.words if word != self.vectors.unknown]

    def encode(self, texts: str | Sequence[str] | Any) -> FloatArray:
        """Vectors of texts (strings, or a pyarrow string column), (texts, dimension) float32, in order, or of
        a single text, (dimension,); zeros without any word that has a vector, and where nothing but rounding
        is left when the components are removed.
        """
        if isinstance(texts, str):
            return self.encode([texts])[0]
        blocks = [self._without_components(block) for block in self.averages(texts)]
        return np.concatenate(blocks) if blocks else np.empty((0, self.dimension), np.float32)

    def averages(self, texts: Sequence[str] | Any) -> Iterator[FloatArray]:
        """Weighted averages before any component is removed, block by block."""
        column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, pa.string())
        for first in range(0, len(column), _BLOCK_ROWS):
            yield self._average(column.slice(first, _BLOCK_ROWS))

    def fitted_to(self, texts: Sequence[str] | Any, components: int = 1) -> WordAverage:
        """The same average without the common components of these texts; raises as
        :func:`common_components`."""
        found = common_components(self.averages(texts), components)
        return WordAverage(self.vectors, self.weighting, found)

    def _average(self, column: Any) -> FloatArray:
        from scipy.sparse import csr_array  # here, as it takes a tenth of a second

        tokens = tokenize_column(column)
        if self.weighting is not None and self.weighting.background.partial:
            self.weighting.background.missing(tokens.occurrences())
        rows = self.vectors.rows(tokens.vocabulary)
        table_rows, compact = np.unique(rows, return_inverse=True)
        table = np.array(self.vectors.vectors[np.maximum(table_rows, 0)], dtype=np.float32)
        weights = np.ones(len(rows)) if self.weighting is None else self.weighting.weights(tokens.vocabulary)
        weights[rows < 0] = 0
        has_vector = (rows >= 0)[tokens.ids]
        lengths = np.bincount(tokens.row_numbers, weights=has_vector, minlength=len(tokens))
        shape = (len(tokens), len(table))
        values = weights[tokens.ids].astype(np.float32)
        sums = csr_array((values, compact[tokens.ids].astype(np.int32), tokens.offsets), shape=shape) @ table
        return np.asarray(sums / np.maximum(lengths, 1)[:, None], dtype=np.float32)

    def _without_components(self, block: FloatArray) -> FloatArray:
        if not len(self.components):
            return block
        rest = np.asarray(block - (block @ self.components.T) @ self.components, dtype=np.float32)
        lengths, rest_lengths = (np.linalg.norm(vectors, axis=1) for vectors in (block, rest))
        rest[rest_lengths <= _ROUNDING * lengths] = 0
        return rest


def common_components(blocks: Iterable[FloatArray], components: int = 1) -> FloatArray:
    """The first right singular vectors of the matrix of all sentence vectors, which is not centred:
    (components, dimension) float32, orthonormal, the largest element positive.

    Found as eigenvectors of the sum of outer products, in double precision: memory does not grow with the
    number of sentences. blocks: (sentences, dimension) each.

    Raises InputError where no sentence has a vector, or for more components than dimensions.
    """
    gram: npt.NDArray[np.float64] | None = None
    for block in blocks:
        double = block.astype(np.float64)
        product = double.T @ double
        gram = product if gram is None else gram + product
    if gram is None or not gram.any():
        raise InputError(
            "no sentence has a vector, so there is no common component",
            remedy="Fit on sentences whose words have vectors.",
        )
    if not 1 <= components <= len(gram):
        raise InputError(f"{components} components of vectors of {len(gram)} numbers")
    _, eigenvectors = np.linalg.eigh(gram)
    found = eigenvectors.T[::-1][:components]
    largest = np.take_along_axis(found, np.abs(found).argmax(axis=1)[:, None], axis=1)
    return (found * np.sign(largest)).astype(np.float32)
