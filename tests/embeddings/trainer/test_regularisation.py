"""Vectors that are fixed."""

from pathlib import Path
from typing import Any

import pytest
import torch

from paraforge.base.devices import torch_threads
from paraforge.base.shards.resources import Resources
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters
from paraforge.embeddings.trainer.train_model import EmbeddingsReport, train_model
from tests.embeddings.trainer.training import sentence_pairs, write_pairs


def train(place: Path, encoder: dict[str, Any], **training: Any) -> tuple[EmbeddingsReport, SentenceModel]:
    place.mkdir()
    data = TrainingData([PairFileParameters(path=str(write_pairs(place / "pairs.tsv", sentence_pairs())))])
    settings = {"epochs": 3, "batch_size": 10, "mega_batch": 2, "learning_rate": 0.05, **training}
    parameters = ModelParameters.model_validate({"encoder": encoder, "training": settings})
    resources = Resources(threads=1, work=place / "work")
    with torch_threads(1):
        report = train_model(parameters, data, place / "model", resources)
    return report, SentenceModel.open(place / "model")


@pytest.mark.full
@pytest.mark.parametrize("kind", ["weights", "lstm"])
def test_only_what_composes_fixed_vectors_is_trained(tmp_path: Path, kind: str) -> None:
    encoder = {"kind": kind, "dimension": 6, "fixed": True}
    _, start = train(tmp_path / "start", encoder, learning_rate=1e-30, loss="margin")
    report, model = train(tmp_path / "trained", encoder, loss="margin")
    before, after = (dict(one.encoder.named_parameters()) for one in (start, model))
    assert torch.equal(before["table"], after["table"])
    assert any(not torch.equal(before[name], after[name]) for name in before if name != "table")
    losses = [entry["loss"] for entry in report.history]
    assert losses[-1] < losses[0]
    assert model.encode(["left1 left2"]).any()
