"""Scores of cross-encoders and sentence-transformers models match the library."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers import models
from paraforge.corpus.scoring.scorers.models import CrossEncoderScore
from paraforge.embeddings.evaluation.comparing import Model
from paraforge.products.loading import load, open_model

# Importing the package takes many seconds.
pytestmark = pytest.mark.full

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "sat", "ran"]
TEXTS = [("the cat sat", "the dog sat"), ("cat", "cat"), ("", "cat"), ("the cat", "unseen dog")]


def save_model(directory: Path, labels: list[str]) -> Path:
    """A tiny BERT with random weights."""
    package = pytest.importorskip("sentence_transformers")
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    directory.mkdir()
    (directory / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=32, id2label=dict(enumerate(labels)), initializer_range=1.0,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(directory)
    transformers.BertTokenizer(vocab=str(directory / "vocab.txt")).save_pretrained(directory)
    package.CrossEncoder(str(directory), device="cpu").save(str(directory))
    return directory


def scores(directory: Path) -> list[float | None]:
    pairs = Pairs.of(*(pa.array(side) for side in zip(*TEXTS, strict=True)))
    found: list[float | None] = CrossEncoderScore(directory)(pairs)["cross_encoder"].to_pylist()
    return found


@pytest.mark.parametrize("labels", [["similarity"], ["contradiction", "Entailment", "neutral"]])
def test_cross_encoder_matches_library(tmp_path: Path, labels: list[str]) -> None:
    directory = save_model(tmp_path / "model", labels)
    found = scores(directory)
    model = pytest.importorskip("sentence_transformers").CrossEncoder(str(directory), device="cpu")
    for (reference, translation), score in zip(TEXTS, found, strict=True):
        if not reference:
            assert score is None
            continue
        both = [(reference, translation), (translation, reference)]
        said = np.asarray(model.predict(both, apply_softmax=len(labels) > 1))
        assert score == pytest.approx(said.mean() if len(labels) == 1 else said[:, 1].min(), abs=1e-5)


def test_cross_encoder_has_no_vectors(tmp_path: Path) -> None:
    directory = save_model(tmp_path / "model", ["similarity"])
    opened = open_model(str(directory))
    expected = [score for score in scores(directory) if score is not None]
    found = opened.model.similarity(*zip(*TEXTS, strict=True))[[0, 1, 3]]
    assert opened.kind == "cross-encoder"
    assert found == pytest.approx(expected, abs=1e-6)
    with pytest.raises(InputError, match="gives no vectors"):
        load(directory)


KNOWN = ["the", "cat", "dog", "sat", "ran"]


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of averaged word vectors, made here."""
    package = pytest.importorskip("sentence_transformers")
    from sentence_transformers.models import Pooling, WordEmbeddings
    from sentence_transformers.models.tokenizer import WhitespaceTokenizer

    vectors = np.random.default_rng(5).normal(size=(len(KNOWN), 6)).astype(np.float32)
    words = WordEmbeddings(WhitespaceTokenizer(KNOWN, stop_words=[]), vectors)
    pooling = Pooling(words.get_word_embedding_dimension(), pooling_mode="mean")
    directory = tmp_path_factory.mktemp("model")
    package.SentenceTransformer(modules=[words, pooling], device="cpu").save(str(directory))
    np.save(directory / "vectors.npy", vectors)
    return directory


def test_cosine(model_directory: Path) -> None:
    vectors = dict(zip(KNOWN, np.load(model_directory / "vectors.npy").astype(np.float64), strict=True))
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
    assert opened.kind == "sentence-transformers" and isinstance(opened.model, Model)
    both = (vectors["the"] + vectors["cat"]) / 2
    np.testing.assert_allclose(opened.model.encode(["the cat"]), [both], atol=1e-6)
