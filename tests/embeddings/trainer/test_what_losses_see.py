"""Scores, sentences and a teacher's vectors, from files to a loss, and models trained with them."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.text.pair_blocks import read_pair_file
from paraforge.base.text.units import Words
from paraforge.embeddings import losses
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.inference.export import export_model
from paraforge.embeddings.trainer import teacher as teacher_module
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import PairStore, build_pair_store
from paraforge.embeddings.trainer.parameters import (
    ModelParameters,
    PairFileParameters,
    TrainingParameters,
    VocabularyParameters,
)
from paraforge.embeddings.trainer.teacher import teacher_vectors
from paraforge.embeddings.trainer.train_model import train_model
from tests.here import run_command

ROWS = [
    (4.5, "a hot day", "a warm day"),
    (0.5, "a hot day", "a cold day"),
    (3.0, "the dog runs", "a dog is running"),
    (0.0, "the dog runs", "Žižka sits"),
    (5.0, "a man sits", "a man is sitting"),
    (1.0, "a man sits", "no man sits"),
]


def scored_file(path: Path) -> Path:
    path.write_text("".join(f"{score}\t{left}\t{right}\n" for score, left, right in ROWS), encoding="utf-8")
    return path


def store_of(directory: Path, **options: Any) -> PairStore:
    path = scored_file(directory / "scored.tsv")
    blocks = read_pair_file(path, columns=(1, 2), score_column=0)
    limits = VocabularyParameters(minimum_count=1)
    return build_pair_store(directory / "pairs", blocks, [Words()], limits, **options)


def test_a_loss_sees_the_scores_sentences_and_teacher_of_its_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order of training: what it is given belongs together."""
    seen: dict[tuple[str, str], float] = {}

    def compute(batch: losses.Batch) -> torch.Tensor:
        assert batch.scores is not None and batch.teacher is not None
        left, right = batch.sentences[: batch.pairs], batch.sentences[batch.pairs :]
        seen.update(zip(zip(left, right, strict=True), batch.scores.tolist(), strict=True))
        lengths = torch.tensor([float(len(one)) for one in batch.sentences])
        assert torch.equal(batch.teacher[:, 0], lengths)
        return batch.embeddings.square().sum()

    loss = losses.Loss(False, compute, scores=True, sentences=True, teacher=True)
    monkeypatch.setattr("paraforge.embeddings.trainer.objective.loss_named", lambda name: loss)
    store = store_of(tmp_path, with_sentences=True)
    texts = [side for _, *sides in ROWS for side in sides]
    store.teacher = np.array([[len(text)] for text in texts], dtype=np.float32)
    encoder = Average(torch.randn(len(store.vocabularies["word"]), 3))
    parameters = TrainingParameters(loss="softmax", batch_size=4, epochs=2)
    encoder_trainer(encoder, store.subset(np.array([5, 0, 3, 1, 2])), parameters).run()
    assert seen == {(left, right): score for score, left, right in ROWS if score != 5.0}


def test_a_pair_without_a_score_is_refused_where_the_loss_needs_one(tmp_path: Path) -> None:
    path = scored_file(tmp_path / "scored.tsv")
    data = TrainingData([PairFileParameters(path=str(path), columns=(1, 2))])
    parameters = ModelParameters(training=TrainingParameters(loss="cosent"))
    with pytest.raises(InputError, match=r"6 of 6 pairs have no score.*score_column"):
        train_model(parameters, data, tmp_path / "model", Resources(work=tmp_path / "work"))
    path.write_text("1\ta\tb\nx\tc\td\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"scored.tsv:2: the score 'x' is not a number"):
        list(read_pair_file(path, columns=(1, 2), score_column=0))


def test_cosent_learns_the_order_of_the_scores(tmp_path: Path) -> None:
    path = scored_file(tmp_path / "scored.tsv")
    run_command(
        "train", path, tmp_path / "model", "--columns", "1,2", "--score-column", "0",
        "--set", "training.loss=cosent",
        "--set", "training.epochs=60", "--set", "vocabulary.minimum_count=1", "--work", tmp_path / "work",
    )  # fmt: skip
    model = SentenceModel.open(tmp_path / "model")
    _, left, right = map(list, zip(*ROWS, strict=True))
    order = np.argsort(model.similarity(left, right))
    assert order.tolist() == np.argsort([score for score, *_ in ROWS]).tolist()


def test_antonyms_are_pushed_apart(tmp_path: Path) -> None:
    (tmp_path / "synonyms.tsv").write_text("hot\twarm\ncold\ticy\nbig\tlarge\nsmall\ttiny\n")
    (tmp_path / "antonyms.tsv").write_text("hot\tcold\nbig\tsmall\nwarm\ticy\n")
    data = TrainingData(
        [
            PairFileParameters(path=str(tmp_path / "synonyms.tsv")),
            PairFileParameters(path=str(tmp_path / "antonyms.tsv"), score=0.0),
        ]
    )
    training = TrainingParameters(loss="antonyms", epochs=300, batch_size=7)
    parameters = ModelParameters(vocabulary=VocabularyParameters(minimum_count=1), training=training)
    train_model(parameters, data, tmp_path / "model", Resources(work=tmp_path / "work"))
    model = SentenceModel.open(tmp_path / "model")
    near = model.similarity(["hot", "cold", "big"], ["warm", "icy", "large"])
    far = model.similarity(["hot", "big", "warm"], ["cold", "small", "icy"])
    assert near.min() > 0.3 and far.max() < 0.1


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
def test_a_model_is_distilled_from_a_sentence_transformers_model(tmp_path: Path, local_teacher: Path) -> None:
    run_command(
        "train", tmp_path / "scored.tsv", tmp_path / "model", "--columns", "1,2",
        "--set", "training.loss=distil", "--set", "training.scale=4", "--set", f"teacher={local_teacher}",
        "--set", "training.epochs=400", "--set", "training.learning_rate=0.01",
        "--set", "vocabulary.minimum_count=1", "--set", "encoder.dimension=20", "--work", tmp_path / "work",
    )  # fmt: skip
    _, left, right = map(list, zip(*ROWS, strict=True))
    wanted = SentenceModel.open(tmp_path / "taught").similarity(left, right)
    found = SentenceModel.open(tmp_path / "model").similarity(left, right)
    # What is near in it is told from what is nearer, up to a constant.
    assert np.corrcoef(found, wanted)[0, 1] > 0.99
    np.testing.assert_allclose(found - found.mean(), wanted - wanted.mean(), atol=0.05)
    assert not list((tmp_path / "work").rglob("vectors"))


@pytest.mark.full
def test_a_teacher_that_is_killed_does_no_block_again(
    tmp_path: Path, local_teacher: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher_module, "BLOCK", 2)
    store = store_of(tmp_path, with_sentences=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # of methods that newer versions call otherwise
        whole = np.array(teacher_vectors(store, local_teacher, tmp_path / "whole", "cpu"))
    texts = [side for _, *sides in ROWS for side in sides]
    np.testing.assert_allclose(whole, SentenceModel.open(tmp_path / "taught").encode(texts), atol=1e-6)
    encode = teacher_module._of_both_sides
    asked: list[str] = []

    def once(model: Any, sentences: list[str]) -> bytes:
        if len(asked) == 4:
            raise KeyboardInterrupt
        asked.extend(sentences)
        return encode(model, sentences)

    monkeypatch.setattr(teacher_module, "_of_both_sides", once)
    with pytest.raises(KeyboardInterrupt):
        teacher_vectors(store, local_teacher, tmp_path / "cut", "cpu")
    asked.append("")
    np.testing.assert_array_equal(teacher_vectors(store, local_teacher, tmp_path / "cut", "cpu"), whole)
    assert sorted(asked) == sorted(["", *texts])


@pytest.mark.parametrize(("loss", "teacher"), [("distil", None), ("softmax", "x")])
def test_a_teacher_is_given_where_the_loss_has_one(loss: str, teacher: str | None) -> None:
    with pytest.raises(ValueError, match=f"the loss {loss} (needs a|has no) teacher"):
        ModelParameters(training=TrainingParameters(loss=loss), teacher=teacher)
