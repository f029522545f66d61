"""Measures speed and memory of training a translation model: ``python -m benchmarks.training --help``."""

import resource
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append
from paraforge.base.shards.resources import Resources, available_cores
from paraforge.base.shards.store import ShardDirectory
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.training import train_model


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def trained(
    bitext: ShardDirectory,
    directory: Path,
    resources: Resources,
    *,
    precision: str,
    updates: int,
    width: int,
    vocabulary: int,
    batch_tokens: int,
    processes: int,
) -> dict[str, float]:
    """Train 3+3 layers from scratch and return figures; see :func:`main`."""
    parameters = NmtParameters.model_validate(
        {
            "vocabulary": {"size": vocabulary},
            "architecture": {
                "encoder_layers": 3,
                "decoder_layers": 3,
                "width": width,
                "feed_forward": 4 * width,
                "heads": 4,
            },
            "training": {
                "batch_tokens": batch_tokens // processes,
                "accumulate": processes,
                "precision": precision,
                "maximum_updates": updates,
                "warmup_updates": updates // 2,
                "learning_rate": 0.002,
            },
            "validation": {"held_out": 50, "every_updates": max(1, updates // 2), "beam": 1},
        }
    )
    started, cpu = time.perf_counter(), _cpu_seconds()
    result = train_model(bitext, directory, parameters, resources)
    seconds = time.perf_counter() - started
    first, last = result.history[0], result.history[-1]
    rate = (last["target_tokens"] - first["target_tokens"]) / (last["seconds"] - first["seconds"])
    return {
        "target_tokens_per_second": rate,
        "seconds": seconds,
        "cpu_seconds": _cpu_seconds() - cpu,
        "validation_loss_bits": last["valid_loss"],
        "bleu": last["bleu"],
        "peak_mib": peak_memory(children=True),
    }


def sample(directory: Path, resources: Resources, pairs: int = 20_000) -> ShardDirectory:
    """Ingest pairs of the sample bitext."""
    source = {"name": "sample", "format": "sample", "pairs": pairs}
    ingest(IngestParameters.model_validate({"sources": [source]}), directory, resources)
    return ShardDirectory(directory)


def main(
    shards: Annotated[Path | None, typer.Option(help="ingested shards; by default the sample bitext")] = None,
    updates: Annotated[int, typer.Option(help="updates to time")] = 100,
    precision: Annotated[list[str] | None, typer.Option(help="float32, bfloat16; may be repeated")] = None,
    threads: Annotated[int, typer.Option(help="0: one per core")] = 0,
    processes: Annotated[int, typer.Option(help="batches of an update, and so processes")] = 2,
    width: Annotated[int, typer.Option(help="of 3+3 layers with a feed-forward of four times that")] = 256,
    vocabulary: Annotated[int, typer.Option(help="pieces, shared")] = 8000,
    batch_tokens: Annotated[int, typer.Option(help="tokens of an update, padding included")] = 4096,
) -> None:
    """Train for a number of updates with each precision; print words, speed, loss and memory."""
    threads = threads or available_cores()
    print(f"{hardware()}; {threads} threads, {processes} batches an update")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        resources = Resources(work=work / "work", threads=threads)
        bitext = ShardDirectory(shards) if shards else sample(work / "ingested", resources)
        for chosen in precision or ["float32", "bfloat16"]:
            sizes: dict[str, Any] = {
                "updates": updates,
                "width": width,
                "vocabulary": vocabulary,
                "processes": processes,
            }
            figures = trained(
                bitext, work / chosen, resources, precision=chosen, batch_tokens=batch_tokens, **sizes
            )
            append(
                "nmt_training_speed",
                chosen,
                figures,
                tokens_an_update=batch_tokens,
                threads=threads,
                **sizes,
            )


if __name__ == "__main__":
    typer.run(main)
