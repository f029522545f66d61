"""Fixtures for all tests."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import hypothesis
import pytest

from paraforge.base import logs
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.word_scorer import WordScorer

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from tests.translation.engines.fake_server import FakeServer

# Hundreds of processes are started; without what Python has compiled, each would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Tensors are small here, and other tests run on the other cores: threads would only wait for one another.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
# A slow or busy machine is not a fault. 'make test-full' sets HYPOTHESIS_PROFILE=thorough.
for _name, _examples in (("fast", 15), ("thorough", 100)):
    hypothesis.settings.register_profile(
        _name, deadline=None, max_examples=_examples, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The directory with real data, from ``PARAFORGE_DATA``; skips the test if it is not set."""
    name = os.environ.get("PARAFORGE_DATA")
    if not name:
        pytest.skip("PARAFORGE_DATA is not set: this test reads real data")
    path = Path(name)
    if not path.is_dir():
        pytest.skip(f"PARAFORGE_DATA={name} is not a directory: this test reads real data")
    return path


@pytest.fixture(scope="session")
def small_model_directory(data_directory: Path) -> Path:
    """A small trained Czech-English model next to the real data; skips the test if it is missing."""
    path = data_directory.parent / "models" / "multi30k-cs-en-small"
    if not path.is_dir():
        pytest.skip(f"{path} is missing: this test reads a trained model")
    return path


@pytest.fixture(scope="session")
def tiny_fairseq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model: fairseq checkpoint, dictionaries and SentencePiece model."""
    if importlib.util.find_spec("fairseq") is None:
        pytest.skip("fairseq is not installed")
    from tests.project import made_once
    from tests.translation.models.tiny import write_tiny_fairseq

    return made_once(tmp_path_factory, "fairseq", write_tiny_fairseq)


@pytest.fixture(scope="session")
def tiny_model(tiny_fairseq: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model as ``paraforge model import`` writes it, for every engine."""
    from tests.project import made_once
    from tests.translation.models.tiny import write_model

    return made_once(tmp_path_factory, "model", lambda path: write_model(tiny_fairseq, path))


@pytest.fixture(scope="session")
def finished_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that was run up to the corpus. Tests only read or copy it."""
    from tests.project import made_once, make_finished

    return made_once(tmp_path_factory, "finished", make_finished)


@pytest.fixture(scope="module")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    from tests.chromium import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def chrome(_chromium: Chrome) -> Chrome:
    """A headless Chromium with default size and settings, without cookies or logs of earlier tests."""
    _chromium.get("about:blank")
    for command, arguments in (
        ("Emulation.clearDeviceMetricsOverride", {}),
        ("Emulation.setEmulatedMedia", {"features": []}),
        ("Emulation.setTouchEmulationEnabled", {"enabled": False}),
        ("Network.clearBrowserCookies", {}),
    ):
        _chromium.execute_cdp_cmd(command, arguments)
    for name in ("browser", "performance"):
        _chromium.get_log(name)
    return _chromium


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    """A running translation server, with its address and key in the environment."""
    from tests.translation.engines.fake_server import serving

    with serving(monkeypatch) as found:
        yield found


@pytest.fixture(scope="session", autouse=True)
def _built_in_scorer_is_opened_once() -> Iterator[None]:
    """Open the built-in scorer once. Hundreds of tests use it, and opening it takes 50 ms."""
    opened, once = WordScorer.open, cache(WordScorer.open)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WordScorer, "open", lambda path: (once if path == DIRECTORY else opened)(path))
        yield


@pytest.fixture(scope="session", autouse=True)
def _duckdb_is_started_once() -> Iterator[None]:
    """Share one DuckDB instance. Starting it takes 40 ms, and hundreds of tests sort a few rows. Each gets
    its own database; forked processes start their own instance."""
    connect, numbers, process = duckdb.connect, count(), os.getpid()
    with connect() as started, pytest.MonkeyPatch.context() as patch:

        def connected(database: str = ":memory:", **options: Any) -> duckdb.DuckDBPyConnection:
            config = options.get("config", {})
            is_usual = config == {"memory_limit": "1GB", "temp_directory": config.get("temp_directory")}
            if not is_usual or os.getpid() != process:
                return connect(database, **options)
            connection, name = started.cursor(), f"own{next(numbers)}"
            return connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")

        patch.setattr(duckdb, "connect", connected)
        yield


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Remove the log handlers of the test, because the next test has another standard error."""
    yield
    logs.remove_handlers()


@pytest.fixture(autouse=True)
def _no_default_scheduler() -> Iterator[None]:
    """Remove the name that a default Dask client may leave behind, because it breaks later readers."""
    yield
    if "dask" in sys.modules:
        left = sys.modules["dask"].config.config.pop("scheduler", None)
        assert left is None, "give Client set_as_default=False"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with slow tests, so that all test processes end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Use one thread within torch's operations, and skip tests marked ``gpu`` without a GPU."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    if item.get_closest_marker("gpu") is not None:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("torch sees no CUDA device")
