"""Keys of trainings: the content of every file is in them, and no path is."""

from pathlib import Path

import numpy as np
import pytest
import torch

from paraforge.base.files import hash_json
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import LstmParameters
from paraforge.embeddings.trainer import train_model
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.parameters import ModelParameters
from tests.embeddings.trainer.training import (
    make_encoder,
    make_store,
    parameters,
)


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
