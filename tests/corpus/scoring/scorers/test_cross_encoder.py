"""A cross-encoder's score equals the library's own, in both directions."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers.models import CrossEncoderScore
from paraforge.embeddings.evaluation.comparing import similarities
from paraforge.embeddings.evaluation.sets import SentencePairs
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
def test_it_is_the_librarys_both_ways(tmp_path: Path, labels: list[str]) -> None:
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


def test_it_can_be_evaluated_and_gives_no_vectors(tmp_path: Path) -> None:
    directory = save_model(tmp_path / "model", ["similarity"])
    opened = open_model(str(directory))
    pairs = SentencePairs("pairs", "pairs", *map(list, zip(*TEXTS, strict=True)), np.zeros(len(TEXTS)))
    expected = [score for score in scores(directory) if score is not None]
    found = similarities(opened.model, pairs)[[0, 1, 3]]
    assert opened.kind == "cross-encoder"
    assert found == pytest.approx(expected, abs=1e-6)
    with pytest.raises(InputError, match="gives no vectors"):
        load(directory)
