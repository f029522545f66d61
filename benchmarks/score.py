"""Speed and memory of the score stage on real pairs: ``python -m benchmarks.score --help``."""

import multiprocessing
import os
import random
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import typer

from benchmarks.distinct_pairs import DistinctPairs, Pair, paraphrase_pairs, rows_of
from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import run_step
from paraforge.base.shards.store import ROWS_PER_SHARD, ShardDirectory, ShardWriter
from paraforge.base.text.tokens import tokenize_columns
from paraforge.corpus.columns import schema_of
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import score_steps


def real_pairs(data: Path) -> list[Pair]:
    """About 690,000 different pairs: those of :func:`paraphrase_pairs`, and sentences of novels with the next
    one."""
    sentences = [fields[2] for fields in rows_of(data / "books" / "sentences.tsv.gz")]
    pairs = paraphrase_pairs(data) + list(zip(sentences[::2], sentences[1::2], strict=False))
    random.Random(1).shuffle(pairs)
    return pairs


def write_translated(pairs: list[Pair], count: int, directory: Path) -> None:
    """Shards as the translate stage leaves them; beyond the real pairs, variations of them."""
    schema = schema_of(["reference", "translation", "rejected", "failed"])
    writer = ShardWriter(directory, schema)

    def write(references: pa.Array, translations: pa.Array) -> None:
        nothing = pa.nulls(len(references), pa.string())
        writer.write(pa.table([references, translations, nothing, nothing], schema=schema))

    for first in range(0, min(count, len(pairs)), ROWS_PER_SHARD):
        part = pairs[first : min(first + ROWS_PER_SHARD, count)]
        write(pa.array([reference for reference, _ in part]), pa.array([made for _, made in part]))
    if count > len(pairs):
        varied = DistinctPairs(pairs)
        for texts in varied.blocks(count - len(pairs), after=len(varied.pairs)):
            write(*texts)
    writer.close({"step": "translate"})


def compare_with_sacremoses(pairs: list[tuple[str, str]]) -> tuple[float, int]:
    """Pairs a processor second that sacremoses tokenises, and how many of them get other tokens here."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang="en")
    started = time.process_time()
    expected = [
        [[token.lower() for token in moses.tokenize(text, escape=False)] for text in pair] for pair in pairs
    ]
    speed = len(pairs) / (time.process_time() - started)
    columns = tokenize_columns(pa.array([r for r, _ in pairs]), pa.array([t for _, t in pairs]))
    found = zip(columns[0].rows(), columns[1].rows(), strict=True)
    return speed, sum(list(ours) != theirs for ours, theirs in zip(found, expected, strict=True))


def measure(place: Path, vectors: Path, identify_language: bool, workers: int) -> None:
    """Run the step and print what it took."""
    resources = Resources(work=place / f"work{workers}", workers=workers, in_process_rows=0)
    step = score_steps(ScoreParameters(identify_language=identify_language), vectors, resources)[0]
    report = run_step(step, [place / "translated"], place / f"scored{workers}", resources)
    times = os.times()
    processor_seconds = times.user + times.system + times.children_user + times.children_system
    append(
        "score",
        f"{report.rows:,} pairs, {workers} processes"
        + (", languages identified" if identify_language else ""),
        {
            "pairs_per_second": report.rows / report.seconds,
            "seconds": report.seconds,
            "pairs_per_cpu_second": report.rows / processor_seconds,
            "peak_mib_per_process": peak_memory(children=workers > 1),
        },
        note="start included in pairs a CPU second",
        pairs=report.rows,
        processes=workers,
    )


def main(
    pairs: int = typer.Option(100_000, help="pairs to score; beyond the real ones, variations of them"),
    workers: str = typer.Option("1,2", help="numbers of processes"),
    vectors: Path = typer.Option(general.DIRECTORY, help="word-vector table; the built-in scorer by default"),
    identify_language: bool = typer.Option(False, help="score languages too"),
    peer_pairs: int = typer.Option(5_000, help="pairs for the comparison with sacremoses"),
    data: Path = typer.Option(Path(os.environ.get("PARAFORGE_DATA", "")), help="$PARAFORGE_DATA"),
    work: Path | None = typer.Option(None, help="directory for what is written; a temporary one by default"),
) -> None:
    """Print pairs per second and peak memory of the score step, and sacremoses' speed in the same run."""
    print(hardware())
    with tempfile.TemporaryDirectory(dir=work) as temporary:
        place = Path(temporary)
        texts = real_pairs(data)
        write_translated(texts, pairs, place / "translated")
        translated = ShardDirectory(place / "translated")
        print(
            f"{translated.total_rows:,} pairs ({min(len(texts), pairs):,} of them real), "
            f"{len(translated)} shards, {vectors}"
        )
        if peer_pairs:
            speed, mismatches = compare_with_sacremoses(texts[:peer_pairs])
            print(
                f"sacremoses alone: {speed:,.0f} pairs a processor second; "
                f"{mismatches} of {min(peer_pairs, len(texts)):,} pairs get other tokens here"
            )
        del texts
        for count in map(int, workers.split(",")):
            # In a process of its own, so that its memory is that of the step.
            process = multiprocessing.get_context("spawn").Process(
                target=measure, args=(place, vectors, identify_language, count)
            )
            process.start()
            process.join()


if __name__ == "__main__":
    typer.run(main)
