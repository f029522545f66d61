"""Workers that die at random times: nothing is lost, nothing is done twice over, the bytes are the same."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import dask
import pytest

from pipeline.configuration.resources import Resources
from pipeline.configuration.translate import TranslateParameters
from pipeline.shards.runner import ATTEMPTS
from pipeline.translation.translate import translate
from tests.planning.test_population import write_corpus

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


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sys.exit", "graceful", "segfault"])
def test_workers_killed_at_random_times(undisturbed: Path, tmp_path: Path, mode: str) -> None:
    from distributed import Client, LocalCluster
    from distributed.chaos import KillWorker

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": ATTEMPTS - 1}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            memory_limit="1GB",
        ) as cluster,
        Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        client.register_plugin(KillWorker(delay="2 s", mode=mode), name="kill")
        resources = Resources(scheduler=cluster.scheduler_address, work=tmp_path / "work")
        report = translate(parameters(40), undisturbed / "in", tmp_path / "none", tmp_path / "out", resources)
        client.unregister_worker_plugin("kill")
        client.wait_for_workers(2)
        after = set(client.run(os.getpid).values())
    assert before != after  # somebody did die
    assert (report.tasks, report.reused_tasks) == (12, 0)
    assert report.translated == report.rows == len(SENTENCES)
    for place in ("out", "work/translate-sentences", "work/translate"):
        assert contents(tmp_path / place) == contents(undisturbed / place)


def contents(directory: Path) -> dict[str, bytes]:
    """Bytes of every finished file; a writer that was killed may have left temporary ones."""
    files = (path for path in directory.iterdir() if path.suffix in (".parquet", ".json"))
    return {path.name: path.read_bytes() for path in files if not path.name.startswith(".")}
