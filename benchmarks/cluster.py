"""The simulated cluster against a real one on this machine, whose workers are killed at random times.

python -m benchmarks.cluster --workers 4 --life 12 --runs 3
"""

import logging
import os
import random
import tempfile
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import dask
import typer
from distributed import Client, LocalCluster, Worker, WorkerPlugin

from benchmarks.hardware import hardware
from benchmarks.results import append
from benchmarks.scaling import write_sentences
from benchmarks.simulation import Outcome, SimulatedCluster, simulate
from paraforge.base.shards.cluster import ATTEMPTS
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import run_step
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.engines.fake import Fake
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.sentences import Workplace, choose_engine, sentences_step

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


class RandomDeath(WorkerPlugin):  # type: ignore[misc]  # distributed has no types
    """Kills its worker after an exponential life, and notes when work began, ended and was cut off."""

    name = "random-death"

    def __init__(self, log: str, life: float) -> None:
        self.log, self.life = log, life

    def setup(self, worker: Worker) -> None:
        """Called when the worker starts."""
        self.worker = worker
        self.busy: dict[str, float] = {}
        self._note("ready", 0.0)
        delay = random.Random(os.urandom(8)).expovariate(1 / self.life)
        worker.loop.asyncio_loop.call_later(delay, self._die)

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Called when a task changes its state."""
        if finish == "executing":
            self.busy[str(key)] = time.time()
        elif start == "executing":
            self._note("done", time.time() - self.busy.pop(str(key), time.time()))

    def _die(self) -> None:
        self._note("killed", sum(time.time() - since for since in self.busy.values()))
        os._exit(1)

    def _note(self, what: str, seconds: float) -> None:
        with Path(self.log).open("a", encoding="utf-8") as file:
            file.write(f"{time.time()} {self.worker.name} {what} {seconds}\n")


def real_run(
    root: Path, workers: int, tasks: int, sentences: int, rate: float, life: float
) -> dict[str, float]:
    """One run with kills: seconds, seconds of work lost, kills, mean restart."""
    log = root / "log"
    engine = TranslateParameters(engine="fake", fake=Fake(sentences_per_second=rate))
    options = {"distributed.scheduler.allowed-failures": ATTEMPTS - 1}
    with (
        dask.config.set(options),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        resources = Resources(scheduler=cluster.scheduler_address, devices=["cpu"], work=root / "work")
        choice = choose_engine("fake", root, engine.options(), engine.settings(), resources)
        step = sentences_step(choice, Workplace(None, ("cpu",), 1, 0))
        run_step(step, [write_sentences(root / "warm", 2 * workers, 8)], None, resources)
        whole = write_sentences(root / "in", tasks, sentences)
        client.register_plugin(RandomDeath(str(log), life))
        begun = time.time()
        run_step(step, [whole], root / "out", resources)
        seconds = time.time() - begun
    assert ShardDirectory(root / "out").total_rows == tasks * sentences
    events = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    killed = [event for event in events if event[2] == "killed" and float(event[0]) <= begun + seconds]
    restarts = []
    for event in killed:
        after = [
            float(e[0]) for e in events if e[1:3] == [event[1], "ready"] and float(e[0]) > float(event[0])
        ]
        restarts += after[:1]
        if after:
            restarts[-1] -= float(event[0])
    return {
        "seconds": seconds,
        "lost": sum(float(event[3]) for event in killed),
        "kills": len(killed),
        "restart": fmean(restarts) if restarts else 0.0,
    }


@app.command()
def cluster(
    workers: int = typer.Option(4),
    tasks: int = typer.Option(60, help="tasks of all workers"),
    rate: float = typer.Option(50, help="sentences per second of a worker"),
    task_seconds: float = typer.Option(2, help="seconds of a task at that rate"),
    life: float = typer.Option(12, help="mean seconds until a worker is killed"),
    runs: int = typer.Option(3, help="real runs"),
    overhead: float = typer.Option(0.06, help="seconds beside a task's sentences (benchmarks.scaling)"),
) -> None:
    """Time, lost work and kills: measured, and as the simulation has them with the restarts measured."""
    logging.disable(logging.WARNING)
    sentences = round(rate * task_seconds)
    print(f"{hardware()}; {workers} workers, {tasks} tasks of {task_seconds:g} s, mean life {life:g} s\n")
    found = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            found.append(real_run(Path(folder), workers, tasks, sentences, rate, life))
    restart = fmean(one["restart"] for one in found)
    model = SimulatedCluster(workers, rate, overhead, restart, crash_hours=life / 3600)
    predicted = [
        _after_start(simulate(tasks * sentences, sentences, model, seed), restart) for seed in range(400)
    ]
    print(f"mean restart of a worker: {restart:.1f} s\n")
    for name, rows in (
        ("measured", [(o["seconds"], o["lost"], o["kills"]) for o in found]),
        ("simulated", predicted),
    ):
        means = [fmean(column) for column in zip(*rows, strict=True)]
        spread = stdev(row[0] for row in rows) if len(rows) > 1 else 0.0
        append(
            "cluster",
            f"{name}, mean",
            {"seconds": means[0], "lost_seconds": means[1], "kills": means[2]},
            deviations={"seconds": spread},
            workers=workers,
            tasks=tasks,
            task_seconds=task_seconds,
            mean_life_seconds=life,
        )


def _after_start(one: Outcome, restart: float) -> tuple[float, float, float]:
    """Seconds since the workers were up, as the real runs count them."""
    return one.hours * 3600 - restart, one.lost_hours * 3600, one.interruptions


if __name__ == "__main__":
    app()
