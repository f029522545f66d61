"""The whole product with the fake engine, as users run it: set up, run, change, and kill."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.files import read_json
from paraforge.intake.sample_bitext import write_sample
from tests.project import digests, environment
from tests.project import run as run_process

LIMIT = 1200
pytestmark = pytest.mark.timeout(LIMIT)
STAGES = ["ingest", "nmt", "translate", "paragram", "score", "select", "publish"]
PAIRS = 300


def run(project: Path, *command: str) -> str:
    """Run a command in the project and return what it says."""
    return run_process(*command, cwd=project).stdout


def repro(project: Path, target: str = "publish") -> list[str]:
    """Run the pipeline to a stage, and return the names of the stages that ran."""
    said = run(project, "dvc", "repro", target)
    return [line.split("'")[1] for line in said.splitlines() if line.startswith("Running stage '")]


def kill_translation(project: Path) -> None:
    """Run the pipeline, and kill it with all of its processes as soon as a task is translated."""
    process = subprocess.Popen(
        ["dvc", "repro", "translate"],
        cwd=project,
        env=environment(),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not [*project.glob("work/translate-sentences/*.parquet")]:
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a bitext of 300 pairs, run to the corpus by one worker."""
    place = tmp_path_factory.mktemp("end")
    texts = [path.read_text(encoding="utf-8") for path in write_sample(place / "bitext", pairs=PAIRS)]
    (place / "pairs.tsv").write_text("".join(texts), encoding="utf-8")
    run(place, "paraforge", "init", "project", "--table", "pairs.tsv")
    project = place / "project"
    run(
        project, "paraforge", "configure", "translation=fake", "translate.sentences_per_task=50",
        "select.filters.paraphrase_score.minimum=0", "resources.workers=1",
    )  # fmt: skip
    assert repro(project) == STAGES
    return project


def test_corpus_is_complete_and_verifies(project: Path) -> None:
    counts = read_json(project / "data/corpus/_manifest.json")["counts"]
    assert counts["rows_in"] == PAIRS
    assert counts["kept"] + sum(counts["rejected"].values()) + sum(counts["failed"].values()) == PAIRS
    assert counts["kept"] > PAIRS / 2
    run(project, "paraforge", "verify", "data/corpus", "data/rejected")
    assert f"{counts['kept']}" in run(project, "paraforge", "summary")


def times_in(metrics: Any) -> Iterator[float]:
    """Yield the durations in a stage's metrics, at any depth."""
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from times_in(value)
        elif name.endswith("seconds") and value is not None:
            yield value


def test_metrics_have_possible_times(project: Path) -> None:
    for stage in STAGES:
        times = [*times_in(read_json(project / f"metrics/{stage}.json"))]
        assert all(0 <= seconds < LIMIT for seconds in times), (stage, times)
        assert times or stage == "publish", stage


def test_rerun_does_nothing_and_threshold_runs_two_stages(project: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(project, tmp_path / "project", symlinks=True))
    assert repro(copied) == []
    threshold = "select.filters.paraphrase_score.minimum=0.2"
    run(copied, "paraforge", "configure", threshold, "resources.threads=2")
    assert repro(copied) == ["select", "publish"]
    first, second = (read_json(place / "data/corpus/_manifest.json")["counts"] for place in (project, copied))
    assert first["rows_in"] == second["rows_in"] and first["kept"] > second["kept"] > 0


def test_two_workers_killed_once_give_same_bytes(project: Path, tmp_path: Path) -> None:
    copied = tmp_path / "project"
    ignored = shutil.ignore_patterns("work", "cache")
    shutil.copytree(project, copied, symlinks=True, ignore=ignored)
    shutil.rmtree(copied / "data" / "translated")
    run(copied, "paraforge", "configure", "resources.workers=2", "resources.in_process_rows=0")
    kill_translation(copied)
    assert repro(copied, "translate") == ["translate"]
    assert digests(copied / "data") == digests(project / "data")
