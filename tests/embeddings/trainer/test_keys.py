"""Keys of trainings: every parameter and the content of every file is in them, and no path is."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraforge.base.files import hash_json
from paraforge.base.section import Section
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import LstmParameters
from paraforge.embeddings.trainer import paragram, train_model
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters, ParagramParameters
from paraforge.embeddings.trainer.schedule import Shuffle
from tests.base.text.test_pair_blocks import write_corpus
from tests.embeddings.trainer.training import (
    make_encoder,
    make_store,
    parameters,
    sentence_pairs,
    write_pairs,
)

# Of these the content is in the key.
FILES = ("vectors", "sentencepiece_model", "teacher", "start", "pair_files", "built_in")


def changed(section: Section) -> Iterator[tuple[str, Any]]:
    """The section with another value of each of its parameters, one at a time."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            others = changed(value)
        elif isinstance(value, bool | int | float):
            others = iter([("", not value if isinstance(value, bool) else value + 1)])
        else:
            others = iter([("", f"other than {value}")])
        for inner, other in others:
            yield f"{name}.{inner}", section.model_copy(update={name: other})


@pytest.mark.parametrize(
    ("key", "section"),
    [(train_model._key, ModelParameters()), (paragram._key, ParagramParameters())],
    ids=["embeddings", "paragram"],
)
def test_every_parameter_is_in_the_key(key: Callable[..., str], section: Section) -> None:
    data = TrainingData()
    found = {"": key(section, data)}
    with warnings.catch_warnings(action="ignore"):  # values of other types
        for name, other in changed(section):
            if not name.startswith(FILES):
                found[name] = key(other, data)
    assert len(found) > 15
    assert len(set(found.values())) == len(found), found


@pytest.mark.parametrize("name", FILES[:4])
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


def test_pairs_and_how_they_are_read_are_in_the_key(tmp_path: Path) -> None:
    path = str(write_pairs(tmp_path / "pairs.tsv", sentence_pairs(4)))
    other = str(write_pairs(tmp_path / "other.tsv", sentence_pairs(5)))
    same = str(write_pairs(tmp_path / "same.tsv", sentence_pairs(4)))
    changes: list[dict[str, Any]] = [
        {"path": other},
        {"format": "tsv"},
        {"columns": (1, 0)},
        {"limit": 3},
        {"score_column": 2},
        {"score": 0.5},
    ]

    def keys(files: list[PairFileParameters], corpora: list[Path]) -> tuple[str, str]:
        data = TrainingData(files, corpora)
        return train_model._key(ModelParameters(), data), paragram._key(ParagramParameters(), data)

    file = PairFileParameters(path=path)
    found = [keys([file.model_copy(update=change)], []) for change in ({}, *changes)]
    assert keys([PairFileParameters(path=same)], []) == found[0]
    found += [keys([file, file], []), keys([], [])]
    for text in ("a", "b"):
        corpus = write_corpus(tmp_path / "corpus", [{"reference": text, "translation": "c"}])
        found.append(keys([], [corpus]))
    for some in zip(*found, strict=True):
        assert len(set(some)) == len(some)


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
        encoder_trainer(make_encoder(store), store, parameters(), shuffle=Shuffle(1, 8, 2, 0)),
    ]
    assert len({hash_json(run.task.identity()) for run in runs}) == len(runs)
