"""Throughput by number of workers, with engines of a fixed rate, and what a task costs beside its sentences.

python -m benchmarks.scaling --workers 1,2,4,8,16
"""

import logging
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append
from paraforge.base.shards.cluster import connect
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import run_step
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.translation.engines.fake import Fake
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.sentences import Workplace, choose_engine, sentences_step

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


def write_sentences(path: Path, tasks: int, sentences: int) -> Path:
    """Shards of sentences as the translation step reads them."""
    schema = pa.schema([pa.field("source_text", pa.string())])
    writer = ShardWriter(path, schema, sentences)
    for task in range(tasks):
        numbers = range(task * sentences, (task + 1) * sentences)
        texts = [f"věta číslo {number} o velkém psovi u starého domu" for number in numbers]
        writer.write(pa.table([texts], schema=schema))
    writer.close({"step": "sentences"})
    return path


def seconds_of(root: Path, workers: int, tasks: int, sentences: int, rate: float) -> float:
    """Seconds that ``tasks`` tasks take on a cluster of workers that are up and have loaded their engine."""
    engine = TranslateParameters(engine="fake", fake=Fake(sentences_per_second=rate))
    with connect(Resources(workers=workers), workers) as client:
        client.wait_for_workers(workers, timeout=120)
        resources = Resources(
            scheduler=client.scheduler.address,
            devices=["cpu"],
            work=root / f"work-{workers}",
            in_process_rows=0,
        )
        choice = choose_engine("fake", root, engine.options(), engine.settings(), resources)
        step = sentences_step(choice, Workplace(None, ("cpu",), 1, 0))
        # One short task a worker first: imports and engines are there before the clock starts.
        warm_up = write_sentences(root / f"warm-{workers}", 2 * workers, 8)
        run_step(step, [warm_up], None, resources)
        whole = write_sentences(root / f"in-{workers}", tasks, sentences)
        started = time.perf_counter()
        run_step(step, [whole], root / f"out-{workers}", resources)
        seconds = time.perf_counter() - started
    assert ShardDirectory(root / f"out-{workers}").total_rows == tasks * sentences
    return seconds


@app.command()
def scaling(
    workers: str = typer.Option("1,2,4,8,16", help="numbers of workers"),
    rate: float = typer.Option(50, help="sentences per second of a worker"),
    task_seconds: float = typer.Option(3, help="seconds of a task at that rate"),
    tasks_a_worker: int = typer.Option(6, help="tasks that each worker gets"),
) -> None:
    """Sentences a second with each number of workers, and that over a worker's rate times their number."""
    logging.disable(logging.WARNING)
    sentences = round(rate * task_seconds)
    print(f"{hardware()}; {rate:g} sentences/s a worker, tasks of {sentences} sentences\n")
    with tempfile.TemporaryDirectory() as folder:
        for count in map(int, workers.split(",")):
            tasks = count * tasks_a_worker
            seconds = seconds_of(Path(folder), count, tasks, sentences, rate)
            speed = tasks * sentences / seconds
            beside = (seconds - tasks_a_worker * sentences / rate) / tasks_a_worker
            append(
                "scaling",
                f"{count} workers",
                {
                    "seconds": seconds,
                    "sentences_per_second": speed,
                    "of_linear": speed / (count * rate),
                    "overhead_milliseconds": 1000 * beside,
                },
                workers=count,
                tasks=tasks,
                sentences_a_task=sentences,
                rate=rate,
            )


if __name__ == "__main__":
    app()
