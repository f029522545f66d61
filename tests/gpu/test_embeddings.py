"""Sentence encoders on a GPU give what they give on the CPU, up to rounding."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraforge.base.shards.resources import Resources
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.train_model import EmbeddingsReport, train_model
from tests.embeddings.trainer.test_train_model import data_of, model_parameters
from tests.embeddings.trainer.training import sentence_pairs, write_pairs

# On the CPU, training is compared with itself: that much is always run.
DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]
WORD = {"kind": "average", "dimension": 8}
SUM = {"kind": "addition", "parts": [WORD, {**WORD, "unit": "trigram"}]}


def trained(
    place: Path, device: str, encoder: dict[str, Any], training: dict[str, Any]
) -> tuple[EmbeddingsReport, SentenceModel]:
    place.mkdir()
    data = data_of(write_pairs(place / "pairs.tsv", sentence_pairs(400)))
    parameters = model_parameters(
        encoder, training={"epochs": 2, "batch_size": 20, "mega_batch": 2} | training
    )
    resources = Resources(threads=1, work=place / "work")
    report = train_model(parameters, data, place / "model", resources, device=device)
    return report, SentenceModel.open(place / "model", device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("encoder", "training"),
    [
        (WORD, {}),
        (WORD, {"loss": "softmax", "negatives": "mix", "lambda_words": 1e-4, "average_after": 0.5}),
        (WORD, {"optimizer": "adagrad", "learning_rate": 0.05, "clip": 1.0}),
        (SUM, {"negatives": "mix"}),
        ({"kind": "lstm", "dimension": 8, "output_dimension": 6}, {}),
        ({"kind": "blstm", "dimension": 8, "output_dimension": 6}, {"lambda_composition": 1e-4}),
        *(({"kind": kind, "dimension": 8}, {}) for kind in ("weights", "projection", "dan", "rnn")),
    ],
    ids=str,
)
def test_device_trains_like_cpu(
    encoder: dict[str, Any], training: dict[str, Any], device: str, tmp_path: Path
) -> None:
    expected, on_cpu = trained(tmp_path / "cpu", "cpu", encoder, training)
    found, on_device = trained(tmp_path / "device", device, encoder, training)
    for first, second in zip(found.history, expected.history, strict=True):
        assert first["loss"] == pytest.approx(second["loss"], rel=1e-3)
    sentences = [side for pair in sentence_pairs(30) for side in pair]
    vectors, others = on_device.encode(sentences), on_cpu.encode(sentences)
    assert np.all(
        (vectors * others).sum(1) > 0.999 * np.linalg.norm(vectors, axis=1) * np.linalg.norm(others, axis=1)
    )
