"""Keys of trainings: the content of every file is in them, and no path is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraforge.base.files import hash_json
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import LstmParameters
from paraforge.embeddings.trainer import paragram, train_model
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.parameters import ModelParameters, ParagramParameters
from tests.embeddings.trainer.training import make_encoder, make_store, parameters


@pytest.mark.parametrize("name", ["vectors", "sentencepiece_model", "teacher", "start"])
def test_the_content_of_a_file_is_in_the_key(tmp_path: Path, name: str) -> None:
    keys = []
    for place, content in (("a", "one"), ("b", "one"), ("b", "two")):
        path = tmp_path / place
        if name in ("teacher", "start"):
            path.mkdir(exist_ok=True)
            (path / "modules.json").write_text(content)
        else:
            path.write_text(content)
        section = ModelParameters().model_copy(update={name: str(path)})
        keys.append(train_model._key(section, TrainingData()))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("module", "version", "settings", "changed"),
    [
        (train_model, "EMBEDDINGS", ModelParameters(), ModelParameters(unknown_words="shared")),
        (paragram, "PARAGRAM", ParagramParameters(), ParagramParameters(dimension=7)),
    ],
)
def test_version_parameters_and_data_are_in_the_key(
    module: Any, version: str, settings: Any, changed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = TrainingData()
    keys = {
        module._key(*one)
        for one in ((settings, data), (changed, data), (settings, TrainingData(drop_leaked=False)))
    }
    monkeypatch.setattr(module, version, 0)
    assert len(keys | {module._key(settings, data)}) == 4


def test_a_checkpoint_is_of_one_encoder_its_pairs_and_their_order(tmp_path: Path) -> None:
    store = make_store(tmp_path / "pairs")
    rows = len(store.vocabularies["word"])
    pooled = [
        build_encoder(LstmParameters(kind="lstm", pooling=one), lambda *_: torch.zeros(rows, 300), 1)
        for one in ("mean", "max")
    ]
    runs = [
        encoder_trainer(make_encoder(store), store, parameters()),
        encoder_trainer(make_encoder(store), store, parameters(margin=0.5)),
        encoder_trainer(make_encoder(store, dimension=6), store, parameters()),
        *(encoder_trainer(encoder, store, parameters()) for encoder in pooled),
        encoder_trainer(make_encoder(store), store.subset(np.arange(len(store))[::-1]), parameters()),
    ]
    assert len({hash_json(run.task.identity()) for run in runs}) == len(runs)
