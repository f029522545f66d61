"""Measures time, speed and peak memory of every stage of a project: ``python -m benchmarks.pipeline
PROJECT``.

It runs ``dvc repro`` there, watches the processes of each stage, and records the stages, where the rows went
and the score bands. What is done already is not run again and has no times.
"""

import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append
from paraforge.base.files import read_json

_STAGE = re.compile(r"stages\.(\w+)")
_EVERY = 0.5
_LOOK_EVERY = 3.0
DVC = "dvc"


@dataclass
class Watched:
    """A stage's start and end, processor seconds, and peak memory: of all its processes together, and of the
    largest."""

    begin: float
    end: float
    cpu: dict[int, float]
    peak_bytes: int = 0
    peak_process_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Elapsed time."""
        return max(self.end - self.begin, _EVERY)

    @property
    def cpu_seconds(self) -> float:
        """Processor time of all processes."""
        return sum(self.cpu.values())


def watch(
    command: list[str],
    directory: Path,
    look: Callable[[dict[str, Watched], float], None] = lambda seen, seconds: None,
) -> tuple[dict[str, Watched], float]:
    """Run a command, and watch it (as the stage ``dvc``) and the stages that it starts.

    look: called every few seconds with what was seen until then.

    Returns:
        What was seen of each stage, and the seconds of the whole.
    """
    seen: dict[str, Watched] = {}
    begin = looked = time.perf_counter()
    process = subprocess.Popen(command, cwd=directory)
    while process.poll() is None:
        memory: dict[str, int] = defaultdict(int)
        now = time.perf_counter()
        root = psutil.Process(process.pid)
        for stage, member in [(DVC, root), *_members(root)]:
            try:
                used = member.cpu_times()
                size = member.memory_full_info().pss
            except psutil.Error:
                continue  # it has just ended
            memory[stage] += size
            watched = seen.setdefault(stage, Watched(now, now, {}))
            watched.end = now
            watched.cpu[member.pid] = used.user + used.system
            watched.peak_process_bytes = max(watched.peak_process_bytes, size)
        for stage, size in memory.items():
            seen[stage].peak_bytes = max(seen[stage].peak_bytes, size)
        if now - looked > _LOOK_EVERY:
            look(seen, now - begin)
            looked = now
        time.sleep(_EVERY)
    if process.returncode:
        sys.exit(process.returncode)
    return seen, time.perf_counter() - begin


def _members(root: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """Return every process below ``root`` that belongs to a stage."""
    try:
        for child in root.children():
            match = _STAGE.search(" ".join(child.cmdline()))
            if match is None:
                yield from _members(child)
            else:
                yield match[1], child
                for descendant in child.children(recursive=True):
                    yield match[1], descendant
    except psutil.Error:
        return


def read_metrics(project: Path) -> dict[str, dict[str, Any]]:
    """Read ``metrics/STAGE.json`` by stage."""
    return {path.stem: read_json(path) for path in sorted((project / "metrics").glob("*.json"))}


def record_stages(corpus: str, seen: dict[str, Watched], metrics: dict[str, dict[str, Any]]) -> None:
    """Record a measurement for each stage that ran."""
    for stage, watched in seen.items():
        if stage == DVC:
            continue
        values = metrics.get(stage, {})
        rows = (
            values.get("sentences") or values.get("rows") or values.get("rows_in") or values.get("pairs") or 0
        )
        if stage == "publish":
            rows = values["pairs"] + values["rejected"] + values["failed"]
        elif stage == "nmt":
            rows = values.get("trained_on", {}).get("pairs", 0)
        append(
            "stages",
            f"{corpus}, {stage}",
            {
                "seconds": watched.seconds,
                "cpu_seconds": watched.cpu_seconds,
                "rows": rows or None,
                "peak_mib": watched.peak_bytes / 2**20,
            },
            corpus=corpus,
            stage=stage,
        )


def record_corpus(corpus: str, metrics: dict[str, dict[str, Any]]) -> None:
    """Record translation quality, counts of rows by fate, and score bands."""
    nmt, selected = metrics.get("nmt", {}), metrics["select"]
    append(
        "corpus",
        corpus,
        {
            "rows": selected["rows_in"],
            "kept": selected["kept"],
            **{f"rejected_{reason}": count for reason, count in selected["rejected"].items()},
            **{f"failed_{reason}": count for reason, count in selected["failed"].items()},
            "bleu": nmt.get("bleu"),
            "chrf": nmt.get("chrf"),
        },
        corpus=corpus,
    )
    for band, values in metrics["publish"]["bands"].items():
        append(
            "score_bands",
            f"{corpus} {band}",
            {
                "scored": values["pairs"],
                "overlap": values["overlap_3"],
                "kept": values["kept"],
                "overlap_of_kept": values["kept_overlap_3"],
            },
            corpus=corpus,
            band=band,
        )


def main(
    project: Annotated[Path, typer.Argument(help="a checkout with its params.yaml")] = Path(),
) -> None:
    """Run ``dvc repro`` in PROJECT, and print and record the cost of each stage and the results."""
    print(hardware(), flush=True)
    seen, seconds = watch([sys.executable, "-m", "dvc", "repro"], project)
    metrics = read_metrics(project)
    print(f"\ndvc repro: {seconds:,.1f} s")
    corpus = ", ".join(metrics["ingest"]["sources"])
    record_stages(corpus, seen, metrics)
    record_corpus(corpus, metrics)


if __name__ == "__main__":
    typer.run(main)
