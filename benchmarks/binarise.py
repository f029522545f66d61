"""Preparing a bitext for fairseq: pairs per second by number of processes, and what one thread does alone.

python -m benchmarks.binarise --pairs 1500000 --workers 1 --workers 2
"""

import hashlib
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from benchmarks.distinct_pairs import DistinctPairs, bitext_pairs
from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardWriter
from paraforge.translation.training import binarisation
from paraforge.translation.training.parameters import NmtParameters

_SCHEMA = pa.schema([(name, pa.string()) for name in ("source_text", "reference", "rejected")])


def _cpu_seconds() -> tuple[float, float]:
    """Of the main thread, and of all processes that have ended and this one."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time(), time.process_time() + ended.ru_utime + ended.ru_stime


def main(
    pairs: int = typer.Option(1_500_000),
    workers: list[int] = typer.Option([1, 2], help="processes; may be repeated"),
    sample: int = typer.Option(100_000, help="pairs that the vocabulary is trained on"),
    data: Path = typer.Option(Path(os.environ.get("PARAFORGE_DATA", "")), help="$PARAFORGE_DATA"),
) -> None:
    """Make distinct pairs of real ones, prepare them with each number of processes, compare the bytes."""
    print(f"{hardware()}; {pairs:,} pairs", flush=True)
    digests = set()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        writer = ShardWriter(place / "shards", _SCHEMA)
        for reference, source in DistinctPairs(bitext_pairs(data)).blocks(pairs):
            writer.write(pa.table([source, reference, pa.nulls(len(source), pa.string())], schema=_SCHEMA))
        writer.close({"step": "ingest"})
        parameters = NmtParameters.model_validate({"vocabulary": {"sample": sample}})
        binarise = binarisation._binarise
        figures: dict[str, float] = {}

        def timed(*arguments: Any, **options: Any) -> Any:
            before, begun = _cpu_seconds(), time.perf_counter()
            result = binarise(*arguments, **options)
            figures["binarise_seconds"] = time.perf_counter() - begun
            taken = [late - early for late, early in zip(_cpu_seconds(), before, strict=True)]
            figures["main_seconds"], figures["cpu_seconds"] = taken
            return result

        binarisation._binarise = timed
        for count in workers:
            work = place / f"work-{count}"
            begun = time.perf_counter()
            prepared = binarisation.prepare_bitext(
                ShardDirectory(place / "shards"), work, parameters, Resources(workers=count)
            )
            seconds = time.perf_counter() - begun
            digest = hashlib.sha256()
            for path in sorted(work.glob("parts/*/*")):
                digest.update(path.read_bytes())
            digests.add(digest.hexdigest())
            append(
                "binarise",
                f"{pairs:,} pairs, {count} processes",
                {
                    "pairs_per_second": prepared.pairs / figures["binarise_seconds"],
                    **figures,
                    "vocabulary_seconds": seconds - figures["binarise_seconds"],
                    "peak_mib": peak_memory(),
                    "different_results": len(digests) - 1,
                },
                pairs=pairs,
                workers=count,
                sample=sample,
            )


if __name__ == "__main__":
    typer.run(main)
