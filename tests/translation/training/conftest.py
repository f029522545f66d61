"""Trainings that several test files use."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from paraforge.translation.training.binarization import prepare_bitext
from paraforge.translation.training.training_run import TrainingRun
from tests.translation.training.test_binarization import accepted, write_shards
from tests.translation.training.test_training import RESOURCES, Prepared, parameters, start


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    directory = tmp_path_factory.mktemp("prepared")
    shards = write_shards(directory / "shards", accepted(200))
    return directory / "work", prepare_bitext(shards, directory / "work", parameters(), RESOURCES)


@pytest.fixture
def begin(tmp_path: Path, prepared: Prepared) -> Callable[..., TrainingRun]:
    """Begins or resumes a run in the directory of this name."""
    return lambda name="run", **changes: start(tmp_path / name, prepared, **changes)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> TrainingRun:
    """A finished run. Tests only read or copy its directory."""
    run = start(tmp_path_factory.mktemp("trained") / "run", prepared)
    assert run.train() == "maximum_updates"
    return run


@pytest.fixture(autouse=True)
def denormal_numbers() -> Iterator[None]:
    yield
    torch.set_flush_denormal(False)
