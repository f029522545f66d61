"""Section ``embeddings``: what is allowed, and what is said where it is not; schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from paraforge.embeddings.encoders.parameters import (
    EncoderParameters,
    encoders_with_files,
    named_encoder,
    units_of,
)
from paraforge.embeddings.trainer.parameters import EmbeddingsParameters, ModelParameters, TrainingParameters
from paraforge.embeddings.trainer.schedule import MegaBatch, Schedule
from paraforge.interface.configuration import check_parameters
from paraforge.interface.configuration.composition import compose
from paraforge.interface.configuration.inputs import link_inputs
from tests.project import ROOT


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ["word", "other"]}, "there is no model 'other'; models has word"),
        ({"names": ["word", "word"]}, "is given twice"),
        ({"names": []}, "at least 1 item"),
        ({"names": ["../x"], "models": {"../x": {}}}, "names a directory"),
        ({"corpus_pairs": False}, "nothing to train on"),
    ],
    ids=["unknown", "twice", "none", "path", "no pairs"],
)
def test_mistakes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EmbeddingsParameters.model_validate(changes)


def test_sources_are_of_mini_batches() -> None:
    with pytest.raises(ValidationError, match="one_source is of mini-batches"):
        TrainingParameters(one_source=True)
    assert TrainingParameters(one_source=True, mega_batch=1).largest_mega_batch == 1
    assert TrainingParameters(one_source=True, loss="softmax").largest_mega_batch == 1
    with pytest.raises(ValidationError, match="has no negatives"):
        TrainingParameters(loss="softmax", batch_size=1, anneal=0)


def test_what_an_encoder_needs() -> None:
    with pytest.raises(ValidationError, match="give sentencepiece_model"):
        ModelParameters.model_validate({"encoder": named_encoder("word+sentencepiece")})
    with pytest.raises(ValidationError, match="the encoder reads none"):
        ModelParameters.model_validate({"encoder": named_encoder("trigram"), "vectors": "vectors.txt"})


def test_named_encoders_are_encoders() -> None:
    adapter: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)
    names = ["word", "trigram", "lstm", "blstm", "dan", "projection", "rnn", "identity_rnn", "lstm_last"]
    for name in names:
        adapter.validate_python(named_encoder(name))
    combined = adapter.validate_python(named_encoder("+".join(names)))
    assert units_of(combined) == {"word", "trigram"}
    with pytest.raises(ValueError, match="there is no encoder 'gru'"):
        named_encoder("word+gru")


def test_kinds_are_of_encoders_and_not_of_the_modules_beside_them() -> None:
    for kind, parameters in encoders_with_files().items():
        assert parameters.model_fields["kind"].default == kind
        ModelParameters.model_validate({"encoder": named_encoder(kind)})
    for module in ("parameters", "build", "protocol"):
        with pytest.raises(ValueError, match=f"there is no encoder '{module}'"):
            named_encoder(module)


def test_dvc_watches_the_files_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "sts" / "2012").mkdir(parents=True)
    for name in ("pairs.tsv", "vectors.txt", "sts/2012/a.tsv", "dev.tsv"):
        (tmp_path / name).touch()
    content = yaml.safe_load(compose(ROOT / "configs", []))
    content["embeddings"] |= {
        "pair_files": [{"path": str(tmp_path / "pairs.tsv")}],
        "models": {"word": {"vectors": str(tmp_path / "vectors.txt")}},
        "development": [str(tmp_path / "dev.tsv")],
        "test_sets": [str(tmp_path / "sts")],
    }
    link_inputs(check_parameters(content, "here"), ["embeddings"], tmp_path / "inputs")
    found = sorted(path.readlink() for path in (tmp_path / "inputs" / "embeddings").iterdir())
    names = ("dev.tsv", "pairs.tsv", "sts/2012/a.tsv", "vectors.txt")
    assert found == [tmp_path / name for name in names]


def walk(schedule: Schedule, epoch: int = 0, updates: int = 0) -> list[tuple[MegaBatch, int]]:
    result = []
    position = 0
    while (mega := schedule.following(epoch, position, updates)) is not None:
        result.append((mega, updates))
        position = mega.last
        updates += len(mega.mini_batches(schedule.batch_size))
    return result


@given(st.integers(2, 300), st.integers(1, 20), st.integers(1, 6), st.integers(0, 4))
def test_an_epoch_uses_every_pair_once(pairs: int, batch_size: int, mega_batch: int, anneal: int) -> None:
    if batch_size * (1 if anneal else mega_batch) < 2:
        return
    schedule = Schedule(pairs, batch_size, mega_batch, anneal, seed=3)
    assert sorted(schedule.order(0)) == list(range(pairs))
    steps = walk(schedule)
    covered = [k for mega, _ in steps for k in range(mega.first, mega.last)]
    assert covered == list(range(pairs))
    for mega, updates in steps:
        assert len(mega) >= 2
        inner = [k for first, last in mega.mini_batches(batch_size) for k in range(first, last)]
        assert inner == list(range(len(mega)))
        assert len(mega) <= batch_size * schedule.mini_batches_of(updates) + 1


def test_annealing_raises_m_by_one() -> None:
    schedule = Schedule(10_000, 10, 5, 3, seed=1)
    assert [schedule.mini_batches_of(updates) for updates in range(0, 18, 3)] == [1, 2, 3, 4, 5, 5]
    assert Schedule(10, 2, 5, 0, seed=1).mini_batches_of(0) == 5


def test_epochs_and_seeds_differ() -> None:
    schedule = Schedule(100, 10, 5, 0, seed=1)
    assert schedule.order(0).tolist() == Schedule(100, 7, 2, 1, seed=1).order(0).tolist()
    assert schedule.order(0).tolist() != schedule.order(1).tolist()
    assert schedule.order(0).tolist() != Schedule(100, 10, 5, 0, seed=2).order(0).tolist()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=80), st.integers(2, 9), st.integers(0, 5))
def test_mini_batches_of_one_source(sources: list[int], batch_size: int, epoch: int) -> None:
    numbers = np.array(sources, dtype=np.int32)
    schedule = Schedule(len(sources), batch_size, 1, 0, seed=3, sources=numbers)
    order = schedule.order(epoch)
    assert sorted(order) == list(range(len(sources)))
    whole = sum(sources.count(source) // batch_size for source in set(sources))
    for number in range(whole):
        assert len(set(numbers[order[number * batch_size : (number + 1) * batch_size]])) == 1
    left = numbers[order[whole * batch_size :]].tolist()
    assert all(left.count(source) < batch_size for source in left)


def test_mini_batches_of_one_source_are_shuffled() -> None:
    numbers = np.repeat(np.arange(4, dtype=np.int32), 50)
    schedule = Schedule(200, 5, 1, 0, seed=1, sources=numbers)
    first, second = (numbers[schedule.order(epoch)][::5].tolist() for epoch in (0, 1))
    assert first != second
    assert sorted(first) == sorted(second) == [k for k in range(4) for _ in range(10)]
    assert first != sorted(first)
    assert schedule.order(0)[:5].tolist() != sorted(schedule.order(0)[:5].tolist())
