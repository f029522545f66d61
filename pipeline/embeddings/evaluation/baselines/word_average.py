"""Sentence vectors by averaging word vectors: plain, weighted (W), and without common components (R)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from paraforge.base.errors import InputError
from paraforge.base.text.tokens import tokenize_column
from paraforge.base.word_vectors.vectors import FloatArray, WordVectors
from paraforge.embeddings.evaluation.baselines.weighting import Weighting
from paraforge.embeddings.evaluation.similarity.comparing import CosineModel

# Bounds the memory of what is worked on: 4096 x 300 float32 are 5 MB, and the words of 4096 sentences.
_BLOCK_ROWS: Final = 4096
_ROUNDING: Final = 1e-6


class WordAverage(CosineModel):
    """`v_s = 1/|s| * sum of weight(w) * v_w`, from which the projections on the components are subtracted.

    Without weighting and components it is plain averaging; with :class:`weighting.SmoothInverseFrequency` and
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
