"""The translation memory: what it saves on a corpus that grows, and what looking up a large corpus costs.

python -m benchmarks.memory growth
python -m benchmarks.memory lookup --sentences 5000000
"""

import logging
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append
from benchmarks.simulation import SimulatedCluster, expected
from paraforge.base.shards.pool import in_threads
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import read_parquet, shard_name, write_shard
from paraforge.translation.memory.memory import HYPOTHESES, REMEMBERED, open_set, stored_keys
from paraforge.translation.memory.recall import recall
from paraforge.translation.stage.ordered_hypotheses import assemble

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def growth(
    sentences: int = typer.Option(10_000_000, help="sentences of the first month"),
    percent: float = typer.Option(10, help="growth a month"),
    months: int = typer.Option(12),
    devices: int = typer.Option(8),
    rate: float = typer.Option(7000, help="sentences per second of a device"),
    task: int = typer.Option(32_000, help="sentences of a task"),
    price: float = typer.Option(2.5, help="of a device for an hour"),
) -> None:
    """Device hours of translating a growing corpus every month: everything again, and what is new."""
    cluster = SimulatedCluster(
        devices, rate, start_seconds=30, spread=0.02, slow_share=0.05, slow_factor=1.2, preemption_hours=3
    )
    size, before = float(sentences), 0.0
    hours = {"everything again": 0.0, "what is new": 0.0}
    for _ in range(months):
        hours["everything again"] += expected(round(size), task, cluster).device_hours
        hours["what is new"] += expected(round(size - before), task, cluster).device_hours
        size, before = size * (1 + percent / 100), size
    for name, spent in hours.items():
        append(
            "memory_growth",
            name,
            {
                "device_hours": spent,
                "cost": spent * price,
                "of_everything": spent / hours["everything again"],
            },
            sentences=sentences,
            percent_a_month=percent,
            months=months,
            devices=devices,
            rate=rate,
            sentences_a_task=task,
        )


@app.command()
def lookup(
    sentences: int = typer.Option(5_000_000, help="sentences that are known"),
    new: float = typer.Option(10, help="per cent of the corpus that is new"),
    workers: int = typer.Option(2, help="processes of the look-up, and threads of the rest"),
) -> None:
    """Seconds and peak memory of adding sentences, of finding those of a corpus, in another order, and of
    joining them."""
    logging.disable(logging.WARNING)
    print(f"{hardware()}; {sentences:,} sentences\n")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        memory = open_set(root / "memory", {"engine": "none"})
        for number, table in enumerate(_tables(sentences)):
            write_shard(table, root / shard_name(number))
        made = sorted(root.glob("*.parquet"))
        adding = _Clock()
        memory.add(in_threads(lambda path: (read_parquet(path), {}), made, workers), threads=workers)
        adding.stop()
        dice = np.random.default_rng(1)
        first = dice.integers(sentences)
        resources = Resources(workers=workers)
        keys = np.memmap(root / "keys", "<u8", "w+", shape=(round(sentences * (1 + new / 100)), 2))
        for begin in range(0, len(keys), 100_000):
            numbers = (first + np.arange(begin, min(begin + 100_000, len(keys)))) % len(keys)
            keys[begin : begin + len(numbers)] = _keys(numbers)
        finding = _Clock()
        found = recall(root / "keys", memory.segments(), [], root / "recall", resources)
        finding.stop()
        assert len(found.unknown) == len(keys) - sentences
        np.asarray(keys[np.asarray(found.places) >= 0]).tofile(root / "known")
        whole = recall(root / "known", found.segments, [], root / "again", resources)
        joining = _Clock()
        assemble(whole, 1, root / "hypotheses", workers)
        joining.stop()
        size = sum(segment.path.stat().st_size for segment in found.segments)
    append(
        "memory_lookup",
        f"{sentences:,} known",
        {
            **adding.figures("add"),
            **finding.figures("find"),
            **joining.figures("join"),
            "bytes_a_sentence": size / sentences,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        },
        sentences=sentences,
        new_percent=new,
        workers=workers,
    )


class _Clock:
    """From now to ``stop``: seconds, and processor seconds of all processes and of the main thread, which
    other cores do not make fewer."""

    def __init__(self) -> None:
        self._begun = self._now()

    def stop(self) -> None:
        self._ended = self._now()

    def _now(self) -> tuple[float, float, float]:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors = time.process_time() + ended.ru_utime + ended.ru_stime
        return time.perf_counter(), processors, time.thread_time()

    def figures(self, name: str) -> dict[str, float]:
        taken = [late - early for early, late in zip(self._begun, self._ended, strict=True)]
        return dict(
            zip((f"{name}_seconds", f"{name}_cpu_seconds", f"{name}_main_seconds"), taken, strict=True)
        )


def _texts(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    words = (numbers[:, None] * np.array([7919, 104729, 1299709, 15485863])) % 9973
    return pa.array(
        [
            f"{a} pes {b} u domu {c} a {d} číslo {n}"
            for (a, b, c, d), n in zip(words.tolist(), numbers.tolist(), strict=True)
        ]
    )


def _keys(
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    stored = b"".join(stored_keys(_texts(numbers)).to_pylist())
    return np.frombuffer(stored, ">u8").astype(np.uint64).reshape(-1, 2)


def _tables(sentences: int) -> Iterator[pa.Table]:
    for begin in range(0, sentences, 50_000):
        numbers = np.arange(begin, min(begin + 50_000, sentences))
        texts = _texts(numbers)
        values: dict[str, object] = {
            "translation": texts,
            "translation_score": pa.array(np.sin(numbers), pa.float32()),
            "rank": pa.repeat(pa.scalar(0, pa.int8()), len(numbers)),
            "failed": pa.nulls(len(numbers), pa.string()),
        }
        flags = pa.repeat(False, len(numbers))
        columns = [values.get(name, flags) for name in HYPOTHESES.names]
        yield pa.table([stored_keys(texts), texts, *columns], schema=REMEMBERED)


if __name__ == "__main__":
    app()
