"""Speed and memory of the score stage on real pairs: ``python -m benchmarks.score --help``."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import typer

from benchmarks.hardware import hardware, peak_memory
from benchmarks.results import append
from paraforge.scoring import general
from paraforge.scoring.parameters import ScoreParameters
from paraforge.scoring.score import score_step
from paraforge.shards.resources import Resources
from paraforge.shards.schema import schema_of
from paraforge.shards.step import run_step
from paraforge.shards.store import ROWS_PER_SHARD, ShardDirectory, ShardWriter, shard_name, write_index
from paraforge.text.tokens import tokenize_columns


def rows_of(path: Path) -> Iterator[list[str]]:
    """Fields of the lines of a compressed TSV but the first, which may be a header."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        next(file)
        for line in file:
            yield line.removesuffix("\n").split("\t")


def real_pairs(data: Path) -> list[tuple[str, str]]:
    """About 690,000 different pairs: news and its machine translations, verses, captions, subtitles, and
    sentences of novels with the next one."""
    news = rows_of(data / "mt_outputs" / "newstest2021.cs-en.tsv.gz")
    pairs = [(fields[1], translation) for fields in news for translation in fields[2:]]
    for fields in rows_of(data / "bitext" / "bkr_cs_x_en7.tsv.gz"):
        pairs += [(fields[2], fields[3]), (fields[4], fields[5])]
    for fields in rows_of(data / "captions" / "train.en5.tsv.gz"):
        pairs += [(fields[0], fields[1]), (fields[2], fields[3])]
    pairs += [(fields[1], fields[2]) for fields in rows_of(data / "paranmt" / "pairs.tsv.gz")]
    sentences = [fields[2] for fields in rows_of(data / "books" / "sentences.tsv.gz")]
    pairs += list(zip(sentences[::2], sentences[1::2], strict=False))
    random.Random(1).shuffle(pairs)
    return pairs


def write_translated(pairs: list[tuple[str, str]], count: int, directory: Path) -> None:
    """Shards as the translate stage leaves them; beyond the real pairs, whole shards are repeated."""
    schema = schema_of(["reference", "translation", "rejected", "failed"])
    writer = ShardWriter(directory, schema)
    for first in range(0, min(count, len(pairs)), ROWS_PER_SHARD):
        part = pairs[first : min(first + ROWS_PER_SHARD, count)]
        nothing = pa.nulls(len(part), pa.string())
        writer.write(pa.table([[r for r, _ in part], [t for _, t in part], nothing, nothing], schema=schema))
    records = writer.close({"step": "translate"})
    full = [record for record in records if record.rows == ROWS_PER_SHARD]
    while sum(record.rows for record in records) < count and full:
        record = full[len(records) % len(full)]
        (directory / shard_name(len(records))).hardlink_to(directory / record.file)
        records.append(type(record)(shard_name(len(records)), record.rows, record.sha256))
    write_index(directory, records, {"step": "translate"})


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
    step = score_step(ScoreParameters(identify_language=identify_language), vectors, resources)
    report = run_step(step, [place / "translated"], place / f"scored{workers}", resources)
    times = os.times()
    processor_seconds = times.user + times.system + times.children_user + times.children_system
    append(
        "score",
        f"{report.rows:,} pairs, {workers} processes",
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
    pairs: int = typer.Option(100_000, help="pairs to score; beyond the real ones, shards are repeated"),
    workers: str = typer.Option("1,2", help="numbers of processes"),
    vectors: Path = typer.Option(general.DIRECTORY, help="word-vector table; the built-in scorer by default"),
    identify_language: bool = typer.Option(False, help="score languages too"),
    peer_pairs: int = typer.Option(5_000, help="pairs for the comparison with sacremoses"),
    data: Path = typer.Option(Path(os.environ.get("PARAFORGE_DATA", "")), help="$PARAFORGE_DATA"),
    work: Path | None = typer.Option(None, help="directory for what is written; a temporary one by default"),
) -> None:
    """Print pairs a second and peak memory of the score step, and sacremoses' speed in the same run."""
    print(hardware())
    with tempfile.TemporaryDirectory(dir=work) as temporary:
        place = Path(temporary)
        texts = real_pairs(data)
        write_translated(texts, pairs, place / "translated")
        translated = ShardDirectory(place / "translated")
        print(
            f"{translated.total_rows:,} pairs ({min(len(texts), pairs):,} of them distinct), "
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
