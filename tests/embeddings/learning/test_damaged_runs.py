"""Whatever happens to a file of a training in the work directory, the model has the same bytes."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from paraforge.base import interrupts
from paraforge.base.errors import Interrupted
from paraforge.base.shards.resources import Resources
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.train_model import train_model
from tests.damage import DAMAGES, apply, flip
from tests.embeddings.trainer.pairs import sentence_pairs, write_pairs
from tests.embeddings.trainer.test_train_model import data_of, model_parameters
from tests.here import Countdown
from tests.interface.cli.test_verify import problems_of
from tests.project import digests

OTHERS = [damage for damage in DAMAGES if damage is not flip]
LOOKS = 4
"""At signals until a training is stopped: it has a checkpoint then."""


def train(place: Path, data: TrainingData) -> dict[str, Any]:
    resources = Resources(threads=1, work=place / "work")
    report = train_model(model_parameters(), data, place / "model", resources, checkpoint_seconds=0.0)
    return {name: value for name, value in asdict(report).items() if "second" not in name}


@pytest.fixture
def data(tmp_path: Path) -> TrainingData:
    return data_of(write_pairs(tmp_path / "pairs.tsv", sentence_pairs()))


@pytest.mark.parametrize("looks", [None, LOOKS, 2 * LOOKS])
def test_any_file(
    data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int | None
) -> None:
    """A bit of each is flipped, and each has one of the other damages."""
    whole, begun = tmp_path / "whole", tmp_path / "begun"
    report = train(whole, data)
    if looks is None:
        train(begun, data)
    else:
        with monkeypatch.context() as patched, pytest.raises(Interrupted):
            patched.setattr(interrupts, "_stop", Countdown(looks))
            train(begun, data)
    names = [name for name in digests(begun / "work") if not name.endswith("lock")]
    assert len(names) > 4
    for number, name in enumerate(names):
        for damage in (flip, OTHERS[(number + (looks or 0) // LOOKS) % len(OTHERS)]):
            place = tmp_path / "damaged"
            shutil.copytree(begun, place)
            apply(damage, place / "work" / name)
            assert train(place, data) == report, (name, damage.__name__)
            assert digests(place / "model") == digests(whole / "model"), (name, damage.__name__)
            shutil.rmtree(place)


def test_verify_finds_damage_to_any_file_of_a_model(data: TrainingData, tmp_path: Path) -> None:
    train(tmp_path, data)
    model = tmp_path / "model"
    assert problems_of(model) == []
    for path in sorted(model.iterdir()):
        for damage in DAMAGES:
            content = path.read_bytes()
            apply(damage, path)
            assert problems_of(model), f"{path.name} after {damage.__name__}"
            path.write_bytes(content)
    apply(flip, model / "model.safetensors")
    (found,) = problems_of(model)
    assert "model/model.safetensors: not as sha256.json says" in found
