"""Lexicon extraction at scale: a Zipf corpus with planted paraphrases, made, counted, and searched for them.

    python -m benchmarks.lexicon make /tmp/zipf --pairs 10000000
    python -m benchmarks.lexicon run /tmp/zipf --workers 2

Words are drawn by Zipf's law. Half of the reference's words are in the translation too, and the others are
drawn anew, except planted words: such a word becomes its planted partner three times in ten. A planted pair
is recalled if the partner is among the first five paraphrases.
"""

from __future__ import annotations

import functools
import itertools
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import typer

from benchmarks.results import append
from paraforge.base.files import read_json, write_json
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import open_jobs
from paraforge.base.shards.store import ShardRecord, shard_name, write_index, write_shard
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.products.lexicon.lookup import Lexicon
from paraforge.products.lexicon.parameters import LexiconParameters

app = typer.Typer(help=__doc__)

TOKENS = 13
KEPT = 0.5
SUBSTITUTED = 0.3
PLANTED = 2_000
RECALLED_RANK = 5


@functools.lru_cache(maxsize=1)
def word_names(words: int) -> list[str]:
    """``words`` distinct lower-case words, short ones for frequent words."""
    letters = "etaoinshrdlcumwfgypbvkjxqz"
    names = []
    for number in range(words):
        name = ""
        left = number + 26  # two letters at least
        while left:
            left, letter = divmod(left, 26)
            name += letters[letter]
        names.append(name)
    return names


def planted_partners(words: int, seed: int) -> npt.NDArray[np.int64]:
    """Partner of each word, or the word itself: pairs of similar frequency, but for very frequent words."""
    random = np.random.default_rng(seed)
    first = np.unique(np.geomspace(100, words // 2 - 1, PLANTED).astype(np.int64) * 2)
    partner = np.arange(words)
    chosen = first[random.random(len(first)) < 0.9]
    partner[chosen], partner[chosen + 1] = chosen + 1, chosen
    return partner


def make_shard(directory: Path, index: int, rows: int, words: int, seed: int) -> ShardRecord:
    """Write one shard of the corpus."""
    random = np.random.default_rng([seed, index])
    weights = np.cumsum(1.0 / np.arange(1, words + 1))
    partner = planted_partners(words, seed)

    def draw(number: int) -> npt.NDArray[np.int64]:
        return np.searchsorted(weights, random.random(number) * weights[-1])

    lengths = random.integers(TOKENS - 7, TOKENS + 8, rows)
    references = draw(int(lengths.sum()))
    chance = random.random(len(references))
    translations = np.where(chance < KEPT, references, draw(len(references)))
    substituted = (partner[references] != references) & (random.random(len(references)) < SUBSTITUTED)
    translations[substituted] = partner[references][substituted]
    names = pa.array(word_names(words))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))

    def text(ids: npt.NDArray[np.int64]) -> Any:
        return pc.binary_join(pa.ListArray.from_arrays(offsets, names.take(pa.array(ids))), " ")

    scores = random.uniform(0.35, 1.0, rows).astype(np.float32)
    sides = {"reference": text(references), "translation": text(translations)}
    table = pa.table({**sides, "paraphrase_score": scores})
    return write_shard(table, directory / shard_name(index))


@app.command()
def make(
    directory: Path = typer.Argument(..., help="where the corpus is to be"),
    pairs: int = typer.Option(1_000_000),
    words: int = typer.Option(200_000, help="word types"),
    seed: int = typer.Option(1),
    workers: int = typer.Option(0),
) -> None:
    """Make the corpus: shards of 50,000 pairs."""
    directory.mkdir(parents=True)
    sizes = [min(50_000, pairs - start) for start in range(0, pairs, 50_000)]
    records: dict[int, ShardRecord] = {}
    with open_jobs(Resources(workers=workers), pairs) as jobs:
        arguments = [(directory, index, rows, words, seed) for index, rows in enumerate(sizes)]
        for index, record in jobs.run(make_shard, arguments, description="make", unit="pairs", sizes=sizes):
            records[index] = record
    write_index(directory, [records[index] for index in range(len(sizes))], {"step": "zipf"})
    write_json(directory / "zipf.json", {"pairs": pairs, "words": words, "seed": seed})


class Usage:
    """Processor time and the largest memory of this process and its children while the block runs.

    Memory is the sum of proportional set sizes, which counts a page that several processes map only once.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._seconds: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def processor_seconds(self) -> float:
        """User and system time, but for the last half second of a process."""
        return sum(self._seconds.values())

    def __enter__(self) -> Usage:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        import psutil

        process = psutil.Process()
        before = sum(process.cpu_times()[:2])
        while not self._stop.wait(0.5):
            total = 0
            for one in [process, *process.children(recursive=True)]:
                try:
                    total += one.memory_full_info().pss
                    self._seconds[one.pid] = sum(one.cpu_times()[:2])
                except psutil.Error:
                    continue
            self._seconds[process.pid] -= before
            self.bytes = max(self.bytes, total)


@app.command()
def run(
    directory: Path = typer.Argument(..., help="corpus made before"),
    workers: int = typer.Option(0),
    minimum_pairs: int = typer.Option(10),
    keep: Path = typer.Option(None, help="keep the lexicon here"),
) -> None:
    """Extract a lexicon and say how fast, in how much memory, and how many planted pairs it has."""
    made = read_json(directory / "zipf.json")
    work = Path(tempfile.mkdtemp(prefix="lexicon-", dir=directory.parent))
    resources = Resources(workers=workers, work=work)
    output = keep or resources.work / "lexicon-output"
    parameters = LexiconParameters(minimum_pairs=minimum_pairs)
    with Usage() as usage:
        report = extract_lexicon([directory], output, parameters, resources)
    lexicon = Lexicon(output)
    found, planted = _recall(lexicon, made["words"], made["seed"])
    started = time.perf_counter()
    for name in word_names(1000)[::10]:
        lexicon.lookup([name])
    look_up = (time.perf_counter() - started) / 100
    size = sum(file.stat().st_size for file in lexicon.files)
    append(
        "lexicon_speed",
        f"{report.rows:,} pairs",
        {
            "seconds": report.seconds,
            "pairs_per_second": report.rows / report.seconds,
            "cpu_seconds": usage.processor_seconds,
            "peak_gb": usage.bytes / 1e9,
            "entries": report.entries,
            "output_gb": size / 1e9,
            "milliseconds_per_look_up": 1000 * look_up,
            "planted_recalled_in_first_five": sum(found.values()),
            "planted": len(planted),
        },
        pairs=report.rows,
        word_types=made["words"],
        workers=resources.worker_count(),
    )
    for name, (hits, total) in _strata(found, planted, made["words"]).items():
        typer.echo(f"planted pairs recalled, words of rank {name}: {hits:,} of {total:,}")
    shutil.rmtree(resources.work, ignore_errors=True)


def _recall(lexicon: Lexicon, words: int, seed: int) -> tuple[dict[int, bool], list[int]]:
    """Which planted words have their partner among the first paraphrases."""
    names = word_names(words)
    partner = planted_partners(words, seed)
    planted = np.flatnonzero(partner != np.arange(words)).tolist()
    entries = lexicon.entries([names[word] for word in planted], ["paraphrase", "rank"])
    best = entries.filter(pc.less_equal(entries["rank"], RECALLED_RANK))
    seen = set(zip(best["word"].to_pylist(), best["paraphrase"].to_pylist(), strict=True))
    return {word: (names[word], names[int(partner[word])]) in seen for word in planted}, planted


def _strata(found: dict[int, bool], planted: list[int], words: int) -> dict[str, tuple[int, int]]:
    bounds = [0, 1_000, 10_000, 50_000, 100_000, words]
    result = {}
    for low, high in itertools.pairwise(bounds):
        inside = [word for word in planted if low <= word < high]
        if inside:
            result[f"{low:,} to {high:,}"] = (sum(found[word] for word in inside), len(inside))
    return result


if __name__ == "__main__":
    app()
