"""What compares the sentences of a pair: the cosine, a similarity of a model's own, or no vectors at all."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from paraforge.embeddings.evaluation.comparing import OwnSimilarity, SentenceEmbedder, similarities
from paraforge.embeddings.evaluation.sets import SentencePairs
from paraforge.embeddings.evaluation.word_lists import SimilarityList, evaluate_words

VECTORS = {"a": [3, 0], "b": [1, 1], "c": [0, 2], "": [0, 0]}


class Embedder:
    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array([VECTORS[text] for text in texts], dtype=np.float32)


class DotProduct(Embedder):
    def similarity_of_vectors(
        self, left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        return (left * right).sum(1, dtype=np.float64)


def pairs() -> SentencePairs:
    return SentencePairs("set", "set", ["a", "b", "a", "a"], ["b", "b", "c", ""], np.array([1.0, 2, 3, 4]))


def test_vectors_are_compared_by_their_cosine() -> None:
    assert not isinstance(Embedder(), OwnSimilarity)
    np.testing.assert_allclose(similarities(Embedder(), pairs()), [0.5**0.5, 1, 0, 0], atol=1e-6)


def test_or_by_what_the_model_compares_them() -> None:
    assert isinstance(DotProduct(), SentenceEmbedder)
    assert similarities(DotProduct(), pairs()).tolist() == [3, 2, 0, 0]


def test_words_are_compared_alike() -> None:
    """By cosine the pair (b, b) comes first, by dot product (a, b)."""
    judgements = SimilarityList("list", [("a", "b"), ("b", "b"), ("a", "c")], [3.0, 2.0, 1.0])
    assert evaluate_words(DotProduct(), judgements).spearman == pytest.approx(100)
    assert evaluate_words(Embedder(), judgements).spearman == pytest.approx(50)
