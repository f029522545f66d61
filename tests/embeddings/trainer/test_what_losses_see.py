"""Vectors of a teacher, and a model distilled from them."""

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from paraforge.base.text.pair_blocks import read_pair_file
from paraforge.base.text.units import Units
from paraforge.embeddings import losses
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.inference.export import export_model
from paraforge.embeddings.trainer import train_model as train_module
from paraforge.embeddings.trainer.mega_batches import encode
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import PairStore, build_pair_store
from paraforge.embeddings.trainer.parameters import ModelParameters, TrainingParameters, VocabularyParameters
from paraforge.embeddings.trainer.train_model import teacher_vectors
from tests.embeddings.trainer.training import write_pairs
from tests.here import run_command

ROWS = [
    ("a hot day", "a warm day"),
    ("a hot day", "a cold day"),
    ("the dog runs", "a dog is running"),
    ("the dog runs", "Žižka sits"),
    ("a man sits", "a man is sitting"),
    ("a man sits", "no man sits"),
]
TEXTS = [side for row in ROWS for side in row]


def store_of(directory: Path, **options: Any) -> PairStore:
    blocks = read_pair_file(write_pairs(directory / "pairs.tsv", ROWS))
    limits = VocabularyParameters(minimum_count=1)
    return build_pair_store(directory / "pairs", blocks, [Units()], limits, **options)


def test_loss_gets_teacher_vectors_of_its_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs and teacher vectors stay together in any training order."""
    seen: set[float] = set()

    def compute(batch: losses.Batch) -> torch.Tensor:
        assert batch.teacher is not None
        # The encoder's own vectors stay where they start, each its sentence's.
        assert torch.equal(batch.teacher[:, 0], batch.embeddings[:, 0])
        seen.update(batch.teacher[:, 0].tolist())
        return 0 * batch.embeddings.sum()

    loss = losses.Loss(False, compute, teacher=True)
    monkeypatch.setattr("paraforge.embeddings.trainer.objective.loss_named", lambda name: loss)
    store = store_of(tmp_path, with_sentences=True)
    assert store.sentences(np.array([5, 0])) == ["a man sits", "a hot day", "no man sits", "a warm day"]
    encoder = Average(torch.randn(len(store.vocabularies["word"]), 3))
    left, right = encode(encoder, store.select(np.arange(len(ROWS)))).chunk(2)
    store.teacher = torch.stack([left, right], 1).reshape(len(TEXTS), 3).numpy()
    parameters = TrainingParameters(loss="softmax", batch_size=4, epochs=2)
    encoder_trainer(encoder, store.subset(np.array([5, 0, 3, 1, 2])), parameters).run()
    chosen = [row for number, row in enumerate(ROWS) if number != 4]
    assert len(seen) == len({side for row in chosen for side in row})


def test_teacher_vectors_of_pair_are_adjacent() -> None:
    teacher = SimpleNamespace(encode=lambda texts, **_: np.array([[len(text)] for text in texts]))
    found = np.frombuffer(train_module._of_both_sides(teacher, ["a", "bb", "ccc", "a"]), np.float32)
    assert found.tolist() == [1, 3, 2, 1]


@pytest.fixture
def local_teacher(tmp_path: Path) -> Path:
    """A small sentence-transformers model of words, of five dimensions."""
    pytest.importorskip("sentence_transformers")
    store = store_of(tmp_path)
    words = store.vocabularies["word"]
    table = torch.randn(len(words), 5, generator=torch.Generator().manual_seed(1))
    parameters = ModelParameters.model_validate({"encoder": {"kind": "average", "dimension": 5}})
    SentenceModel(Average(table), parameters.encoder, {"word": words}).save(tmp_path / "taught")
    export_model(tmp_path / "taught", tmp_path / "teacher", "sentence-transformers")
    return tmp_path / "teacher"


@pytest.mark.full
def test_model_is_distilled_from_sentence_transformer(tmp_path: Path, local_teacher: Path) -> None:
    run_command(
        "train", tmp_path / "pairs.tsv", tmp_path / "model",
        "--set", "training.loss=distil", "--set", "training.scale=4", "--set", f"teacher={local_teacher}",
        "--set", "training.epochs=400", "--set", "training.learning_rate=0.01",
        "--set", "vocabulary.minimum_count=1", "--set", "encoder.dimension=20", "--work", tmp_path / "work",
    )  # fmt: skip
    left, right = map(list, zip(*ROWS, strict=True))
    wanted = SentenceModel.open(tmp_path / "taught").similarity(left, right)
    found = SentenceModel.open(tmp_path / "model").similarity(left, right)
    # What is near in it is told from what is nearer, up to a constant.
    assert np.corrcoef(found, wanted)[0, 1] > 0.99
    np.testing.assert_allclose(found - found.mean(), wanted - wanted.mean(), atol=0.05)
    assert not list((tmp_path / "work").rglob("*.vectors"))


@pytest.mark.full
def test_teacher_vectors_are_computed_once(
    tmp_path: Path, local_teacher: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_module, "_TEACHER_BLOCK", 4)
    store, path = store_of(tmp_path, with_sentences=True), tmp_path / "vectors"
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # of methods that newer versions call otherwise
        found = np.array(teacher_vectors(store, local_teacher, path, "cpu"))
    np.testing.assert_allclose(found, SentenceModel.open(tmp_path / "taught").encode(TEXTS), atol=1e-6)
    monkeypatch.delattr(train_module, "_of_both_sides")
    np.testing.assert_array_equal(teacher_vectors(store, local_teacher, path, "cpu"), found)


@pytest.mark.parametrize(("loss", "teacher"), [("distil", None), ("softmax", "x")])
def test_teacher_is_required_by_loss(loss: str, teacher: str | None) -> None:
    with pytest.raises(ValueError, match=f"the loss {loss} (needs a|has no) teacher"):
        ModelParameters(training=TrainingParameters(loss=loss), teacher=teacher)
