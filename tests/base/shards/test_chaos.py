"""Workers that die at random times: nothing is lost, nothing is done twice over, the bytes are the same."""

import contextlib
import logging
import os
import random
import threading
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed.chaos import KillWorker

from paraforge.base.errors import IncompleteError
from paraforge.base.shards.cluster import ATTEMPTS
from paraforge.base.shards.resources import Resources
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.translate import translate
from tests.translation.stage.test_population import write_corpus

SENTENCES = [f"věta {number} " + "slovo " * (number % 11) for number in range(360)]


def parameters(rate: float) -> TranslateParameters:
    values = {"engine": "fake", "sentences_per_task": 30, "nbest": 2, "fake": {"sentences_per_second": rate}}
    return TranslateParameters.model_validate(values)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of the corpus."""
    place = tmp_path_factory.mktemp("undisturbed")
    write_corpus(place / "in", SENTENCES, rows=90)
    translate(
        parameters(0), place / "in", place / "none", place / "out", Resources(workers=1, work=place / "work")
    )
    return place


class KillTheFirst(KillWorker):  # type: ignore[misc]  # Dask has no types
    """Kills so many lives of workers at random times, and spares the rest: a slow machine ends, too.

    The random times are drawn from a seed: with a mean of 1.5 seconds the lives end after 0.6, 0.4, 1.0
    and 1.3 seconds, so that somebody dies in every run, which takes two seconds or more.
    """

    def __init__(self, log: str, lives: int, delay: str, mode: Any) -> None:
        super().__init__(delay, mode)
        self.log, self.lives = log, lives

    async def setup(self, worker: Any) -> None:
        with Path(self.log).open("a") as file:
            file.write(".")
        life = Path(self.log).stat().st_size
        if life <= self.lives:
            random.seed(6 + life)
            await super().setup(worker)


def keep_workers(cluster: Any, client: Any, stop: threading.Event) -> None:
    """Start a worker where one has gone for good: a nanny does not replace one that ended by itself."""
    while not stop.wait(0.2):
        with contextlib.suppress(Exception):  # the cluster may be closing
            if len(client.nthreads()) < 2:
                cluster.scale(len(cluster.worker_spec) + 1)
                stop.wait(2)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["sys.exit", "graceful", "segfault"])
def test_workers_killed_at_random_times(undisturbed: Path, tmp_path: Path, mode: str) -> None:
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": ATTEMPTS - 1}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            memory_limit="1GB",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        before = set(client.run(os.getpid).values())
        stop = threading.Event()
        keeper = threading.Thread(target=keep_workers, args=(cluster, client, stop), daemon=True)
        keeper.start()
        client.register_plugin(KillTheFirst(str(tmp_path / "lives"), 4, "1.5 s", mode), name="kill")
        resources = Resources(scheduler=cluster.scheduler_address, work=tmp_path / "work")
        report = translate(parameters(80), undisturbed / "in", tmp_path / "none", tmp_path / "out", resources)
        stop.set()
        keeper.join()
        after = set(client.run(os.getpid).values())
    assert before != after or (tmp_path / "lives").stat().st_size > 2  # somebody did die
    assert (report.tasks, report.reused_tasks) == (12, 0)
    assert report.translated == report.rows == len(SENTENCES)
    for place in ("out", "work/translate-sentences", "work/translate"):
        assert contents(tmp_path / place) == contents(undisturbed / place)


def contents(directory: Path) -> dict[str, bytes]:
    """Bytes of every finished file; a writer that was killed may have left temporary ones."""
    files = (path for path in directory.iterdir() if path.suffix in (".parquet", ".json"))
    return {path.name: path.read_bytes() for path in files if not path.name.startswith(".")}


@pytest.mark.full
def test_a_run_without_workers_stops(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr("paraforge.base.shards.cluster._PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr("paraforge.base.shards.cluster._SECONDS_BETWEEN_COUNTS", 0.2)
    with LocalCluster(n_workers=0, dashboard_address=None, silence_logs=logging.CRITICAL) as cluster:
        resources = Resources(scheduler=cluster.scheduler_address, work=tmp_path / "work")
        with pytest.raises(IncompleteError, match="no usable worker for"):
            translate(parameters(0), undisturbed / "in", tmp_path / "none", tmp_path / "out", resources)
    assert not (tmp_path / "out").exists()
