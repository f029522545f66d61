"""Near repeats of meaning: what is found of exact search, speed and memory, beside the filter by characters.

python -m benchmarks.near_repeats exact --data DIRECTORY
python -m benchmarks.near_repeats speed --data DIRECTORY --rows 1000000
"""

import random
import tempfile
import time
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from benchmarks.distinct_pairs import DistinctPairs, paraphrase_pairs, rows_of
from benchmarks.hardware import peak_memory
from benchmarks.results import append
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, shard_name, write_index, write_shard
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.columns import schema_of
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

TASK = "near_repeats"
KINDS = ("near_repeats", "near_duplicates")
_SHARD_ROWS = 50_000
_BLOCK = 2_000


def real_sentences(data: Path, count: int, seed: int) -> list[str]:
    """Distinct sentences of novels, captions, Tatoeba and news, drawn at random."""
    found = {fields[-1] for fields in rows_of(data / "books" / "sentences.tsv.gz")}
    for fields in rows_of(data / "captions" / "train.en5.tsv.gz"):
        found.update(fields[:5])
    for name in ("tatoeba", "newstest2008-2023"):
        found.update(fields[-2] for fields in rows_of(data / "bitext" / f"{name}.en-cs.tsv.gz"))
    return random.Random(seed).sample(sorted(found), count)


def write_corpus(root: Path, texts: Iterable[pa.Array], scores: npt.NDArray[np.float32]) -> Path:
    """A directory of shards, each of the texts of an array; scores: of all rows."""
    schema = schema_of(("source", "line", "reference", "paraphrase_score", "rejected"))
    records, first = [], 0
    root.mkdir()
    for number, references in enumerate(texts):
        rows = len(references)
        columns = {
            "source": pa.array(["real"] * rows),
            "line": pa.array(np.arange(first + 1, first + rows + 1)),
            "reference": references,
            "paraphrase_score": pa.array(scores[first : first + rows]),
            "rejected": pa.nulls(rows, pa.string()),
        }
        table = pa.table([columns[name] for name in schema.names], schema=schema)
        records.append(write_shard(table, root / shard_name(number)))
        first += rows
    write_index(root, records, {"step": "score", "version": 1, "parameters": {}, "fingerprints": {}})
    return root


def selected(kind: str, corpus: Path, root: Path, workers: int) -> tuple[npt.NDArray[np.bool_], Any]:
    """Which rows a filter rejects, and what it needed."""
    parameters = SelectParameters.model_validate({"deciles": [], "filters": [{"kind": kind}]})
    processor, started = time.process_time(), time.perf_counter()
    select(parameters, [corpus], root / kind, Resources(workers=workers, work=root / "work"))
    needed = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - processor,
    }
    reasons = pa.concat_tables(ShardDirectory(root / kind).tables(["rejected"]))["rejected"]
    return np.asarray(reasons.is_valid()), needed


def exact_pairs(vectors: npt.NDArray[np.float32], cosine: float) -> tuple[Any, Any]:
    """All pairs of rows whose cosine is at least ``cosine``, (2, pairs), and the cosines."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    found, cosines = [], []
    for first in range(0, len(unit), _BLOCK):
        products = unit[first : first + _BLOCK] @ unit[first:].T
        one, other = np.nonzero(products >= cosine)
        later = other > one
        found.append(first + np.stack([one[later], other[later]]))
        cosines.append(products[one[later], other[later]])
    return np.concatenate(found, 1), np.concatenate(cosines)


def exact_repeats(pairs: Any, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """Rows that have a kept one near them, judged from the best on."""
    order = np.lexsort((np.arange(len(scores)), -scores))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    better: dict[int, list[int]] = {}
    for one, other in pairs.T.tolist():
        low, high = (one, other) if place[one] > place[other] else (other, one)
        better.setdefault(low, []).append(high)
    repeated = np.zeros(len(scores), bool)
    for row in sorted(better, key=lambda row: place[row]):
        repeated[row] = not all(repeated[other] for other in better[row])
    return repeated


@app.command()
def exact(
    data: Path = typer.Option(..., help="directory of the shared data"),
    rows: int = typer.Option(200_000),
    cosine: float = typer.Option(0.95),
    seed: int = typer.Option(1),
    workers: int = typer.Option(2),
) -> None:
    """Compare both filters with exact search over real sentences, no text twice."""
    texts = pa.array(real_sentences(data, rows, seed))
    scores = np.random.default_rng(seed).random(rows).astype(np.float32)
    tokens = tokenize_column(texts)
    started = time.process_time()
    pairs, cosines = exact_pairs(
        tokens.sums(WordScorer.open(DIRECTORY).vectors.of_words(tokens.vocabulary)), cosine
    )
    exact_seconds = time.process_time() - started
    wanted = exact_repeats(pairs, scores)
    with tempfile.TemporaryDirectory(prefix="near-repeats-") as temporary:
        root = Path(temporary)
        parts = [texts.slice(first, _SHARD_ROWS) for first in range(0, rows, _SHARD_ROWS)]
        corpus = write_corpus(root / "corpus", parts, scores)
        for kind in KINDS:
            rejected, needed = selected(kind, corpus, root, workers)
            left = ~rejected[pairs[0]] & ~rejected[pairs[1]]
            append(
                TASK,
                f"{kind}, {rows:,} real sentences",
                {
                    "pairs": len(cosines),
                    "recall": 1 - float(left.mean()),
                    "recall_at_threshold": 1 - float(left[cosines < cosine + 0.01].mean()),
                    "repeats": int(wanted.sum()),
                    "rejected": int(rejected.sum()),
                    "rejected_of_repeats": float(rejected[wanted].mean()),
                    "exact_cpu_seconds": exact_seconds,
                    **needed,
                },
                seeds=[seed],
                rows=rows,
                cosine=cosine,
                note="the machine was shared: seconds are an upper bound",
            )


def generate(corpus: Path, data: Path, rows: int, seed: int) -> None:
    """Write a corpus of real sentences, and of variants of these with other words."""
    texts = (block[0] for block in DistinctPairs(paraphrase_pairs(data), seed).blocks(rows))
    write_corpus(corpus, texts, np.random.default_rng(seed).random(rows, dtype=np.float32))


@app.command()
def speed(
    data: Path = typer.Option(..., help="directory of the shared data"),
    rows: int = typer.Option(1_000_000),
    seed: int = typer.Option(1),
    workers: int = typer.Option(2),
    kinds: list[str] = typer.Option(list(KINDS)),
) -> None:
    """Select from many pairs: real ones, and variants of these with other words."""
    with tempfile.TemporaryDirectory(prefix="near-repeats-") as temporary:
        root = Path(temporary)
        # In a process of its own, so that its memory is not counted.
        process = get_context("spawn").Process(target=generate, args=(root / "corpus", data, rows, seed))
        process.start()
        process.join()
        if process.exitcode:
            raise typer.Exit(1)
        for kind in kinds:
            rejected, needed = selected(kind, root / "corpus", root, workers)
            append(
                TASK,
                f"{kind}, {rows:,} pairs",
                {
                    "rejected": int(rejected.sum()),
                    "pairs_per_second": rows / needed["seconds"],
                    "pairs_per_core_second": rows / needed["cpu_seconds"],
                    **needed,
                    "peak_mib": peak_memory(),
                },
                seeds=[seed],
                rows=rows,
                note="the machine was shared: rates are a lower bound",
            )


if __name__ == "__main__":
    app()
