"""Fixtures that any test may use."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paraforge import logs

if TYPE_CHECKING:
    from tests.decoding.remote.fake_server import FakeServer

# Hundreds of processes are started; without what Python has compiled, each would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Workers of Dask are forked from a process that has imported Dask, as in its own tests.
os.environ["DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD"] = "forkserver"


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The directory of real data named by ``PARAFORGE_DATA``; the test is skipped where there is none."""
    name = os.environ.get("PARAFORGE_DATA")
    if not name:
        pytest.skip("PARAFORGE_DATA is not set: this test reads real data")
    path = Path(name)
    if not path.is_dir():
        pytest.skip(f"PARAFORGE_DATA={name} is not a directory: this test reads real data")
    return path


@pytest.fixture(scope="session")
def small_model_directory(data_directory: Path) -> Path:
    """A small trained Czech-English model beside the real data; the test is skipped where there is none."""
    path = data_directory.parent / "models" / "multi30k-cs-en-small"
    if not path.is_dir():
        pytest.skip(f"{path} is missing: this test reads a trained model")
    return path


@pytest.fixture(scope="session")
def tiny_fairseq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model made on the spot: fairseq checkpoint, dictionaries and SentencePiece model."""
    if importlib.util.find_spec("fairseq") is None:
        pytest.skip("fairseq is not installed")
    from tests.models.tiny import write_tiny_fairseq

    return write_tiny_fairseq(tmp_path_factory.mktemp("fairseq"))


@pytest.fixture(scope="session")
def tiny_ctranslate2(tiny_fairseq: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model for CTranslate2."""
    from tests.models.tiny import write_ctranslate2

    return write_ctranslate2(tiny_fairseq, tmp_path_factory.mktemp("ctranslate2"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A running translation server, its address and key in the environment."""
    from tests.decoding.remote.fake_server import serving

    with serving(monkeypatch) as found:
        yield found


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """What a test had logged goes no further: the standard error of the next one is another."""
    yield
    if logs.remove_handlers():
        logging.getLogger().setLevel(logging.WARNING)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what may take long, so that all processes of the tests end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests marked ``gpu`` where torch sees no device."""
    if item.get_closest_marker("gpu") is not None:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("torch sees no CUDA device")
