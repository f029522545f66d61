"""The cosine under a sentence-transformers directory equals the library's own."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers import models
from paraforge.embeddings.evaluation.comparing import SentenceEmbedder
from paraforge.products.loading import open_model

# Importing the package takes many seconds.
pytestmark = pytest.mark.full

WORDS = ["the", "cat", "dog", "sat", "ran"]


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of averaged word vectors, made here."""
    package = pytest.importorskip("sentence_transformers")
    from sentence_transformers.models import Pooling, WordEmbeddings
    from sentence_transformers.models.tokenizer import WhitespaceTokenizer

    vectors = np.random.default_rng(5).normal(size=(len(WORDS), 6)).astype(np.float32)
    words = WordEmbeddings(WhitespaceTokenizer(WORDS, stop_words=[]), vectors)
    pooling = Pooling(words.get_word_embedding_dimension(), pooling_mode="mean")
    directory = tmp_path_factory.mktemp("model")
    package.SentenceTransformer(modules=[words, pooling], device="cpu").save(str(directory))
    np.save(directory / "vectors.npy", vectors)
    return directory


def test_cosine(model_directory: Path) -> None:
    vectors = dict(zip(WORDS, np.load(model_directory / "vectors.npy").astype(np.float64), strict=True))
    texts = [("the cat sat", "the dog sat"), ("cat", "cat"), ("the cat", "dog ran"), ("unseen", "cat")] * 2
    pairs = Pairs.of(pa.array([r for r, _ in texts]), pa.array([t for _, t in texts]))
    column = models.SentenceTransformerCosine(model_directory)(pairs)["cosine"]
    for (reference, translation), cosine in zip(texts, column.to_pylist(), strict=True):
        if reference == "unseen":
            assert cosine is None
            continue
        left, right = (
            np.mean([vectors[word] for word in text.split()], axis=0) for text in (reference, translation)
        )
        expected = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
        assert cosine == pytest.approx(expected, abs=1e-5)
    opened = open_model(str(model_directory))
    assert opened.kind == "sentence-transformers" and isinstance(opened.model, SentenceEmbedder)
    both = (vectors["the"] + vectors["cat"]) / 2
    np.testing.assert_allclose(opened.model.encode(["the cat"]), [both], atol=1e-6)
