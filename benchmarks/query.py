"""Queries of a large corpus: time of a filtered count and of a random sample, and peak memory.

Generates a published corpus of random sentences in the project's own Parquet dialect, with its manifest. The
scores of every file are drawn anew; the texts are those of a few files, repeated: no query depends on them.
``python -m benchmarks.query --help``
"""

import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append
from paraforge.base.shards.store import shard_name, write_parquet
from paraforge.corpus.columns import COLUMNS, schema_of
from paraforge.corpus.publication.manifest import Manifest, PublishedFile, describe_columns
from paraforge.corpus.selection.fate import Counts

DIRECTORY = Path("/tmp/paraforge-query-benchmark/corpus")
SOURCES = ("news", "subtitles", "tatoeba", "web")
TEXTS = 4
SCORES = ("paraphrase_score", "overlap_1", "overlap_2", "overlap_3", "copy_rate", "translation_score")


def sentences(random: np.random.Generator, rows: int, words: pa.Array, length: int) -> pa.Array:
    """Random sentences of ``length`` words."""
    import pyarrow.compute as pc

    picked = [words.take(pa.array(random.zipf(1.3, rows) % len(words))) for _ in range(length)]
    return pc.binary_join_element_wise(*picked, " ")


@lru_cache(maxsize=TEXTS)
def texts(number: int, rows: int) -> dict[str, pa.Array]:
    """Sentences of one file."""
    random = np.random.default_rng(number)
    words = pa.array([f"{chr(97 + n % 26)}{n:x}" for n in range(20_000)])
    lengths = {"source_text": 9, "reference": 11, "translation": 11}
    return {name: sentences(random, rows, words, length) for name, length in lengths.items()}


def shard(number: int, rows: int) -> pa.Table:
    """One file's pairs."""
    random = np.random.default_rng(number)
    columns: dict[str, pa.Array] = {
        "source": pa.array(np.array(SOURCES)[np.full(rows, number % len(SOURCES))]),
        "line": pa.array(np.arange(rows, dtype=np.int64) + number * rows + 1),
        **texts(number % TEXTS, rows),
        "rank": pa.array(np.zeros(rows, np.int8)),
        "reference_tokens": pa.array(random.integers(1, 31, rows, dtype=np.int32)),
        "translation_tokens": pa.array(random.integers(1, 31, rows, dtype=np.int32)),
        "rejected": pa.nulls(rows, pa.string()),
    }
    for name in SCORES:
        columns[name] = pa.array(random.random(rows, dtype=np.float32))
    schema = schema_of(columns)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def generate(directory: Path, pairs: int, rows: int = 50_000) -> None:
    """Write a corpus unless it is there."""
    if (directory / "_manifest.json").is_file():
        return
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    counts: dict[str, Counts] = {source: Counts() for source in SOURCES}
    for number in range(pairs // rows):
        path = directory / shard_name(number)
        table = shard(number, rows)
        write_parquet(table, path)
        files.append(PublishedFile(path.name, rows, path.stat().st_size, "0" * 64))
        counts[SOURCES[number % len(SOURCES)]].add(Counts(rows, rows, Counter(), Counter()))
    total = Counts(pairs, pairs, Counter(), Counter())
    columns = describe_columns(pa.schema([COLUMNS[name] for name in table.column_names]))
    Manifest("corpus", "benchmark", "src:generated", total, counts, files, columns, {}, {}).write(directory)


def measure(corpus: Path, what: str, repeats: int) -> None:
    """Run one kind of query in this process and print its times and the peak memory."""
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.query.database import fetch, open_database
    from paraforge.interface.query.drawn_pairs import Band, sample_pairs

    seconds, busy = [], []
    for repeat in range(repeats):
        started, used = time.perf_counter(), time.process_time()
        dataset = open_published(corpus)
        if what == "count":
            sql = "SELECT count(*) AS n FROM corpus WHERE paraphrase_score > 0.8 AND overlap_3 < 0.3"
            with open_database([dataset]) as connection:
                quality = f"{fetch(connection, sql)['n'][0].as_py():,} pairs"
        else:
            band = Band(0.6, 0.8) if what == "sample of a band" else None
            drawn = sample_pairs(dataset, 20, repeat, band)
            quality = f"20 of {drawn.population:,}"
        seconds.append(time.perf_counter() - started)
        busy.append(time.process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    append(
        "query",
        what,
        {
            "fastest_seconds": min(seconds),
            "median_seconds": statistics.median(seconds),
            "first_seconds": seconds[0],
            "median_cpu_seconds": statistics.median(busy),
            "peak_mib": peak,
        },
        note=f"{repeats} repeats; {quality}",
        pairs=dataset.rows,
    )


def main(
    corpus: Path = typer.Option(DIRECTORY, help="made if it is not there"),
    pairs: int = typer.Option(10_000_000, min=50_000, help="size of the corpus"),
    repeats: int = typer.Option(5, min=1),
    only: str = typer.Option("", help="one kind of query, in this process"),
) -> None:
    """Time queries of a generated corpus; each kind runs in a process of its own."""
    if only:
        measure(corpus, only, repeats)
        return
    generate(corpus, pairs)
    size = sum(path.stat().st_size for path in corpus.glob("*.parquet"))
    print(f"{hardware()}; {pairs:,} pairs, {size / 1e9:.2f} GB\n", flush=True)
    for what in ("count", "sample", "sample of a band"):
        command = [sys.executable, "-m", "benchmarks.query", "--corpus", str(corpus), "--only", what]
        subprocess.run([*command, "--repeats", str(repeats)], check=True)


if __name__ == "__main__":
    typer.run(main)
