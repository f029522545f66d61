"""Translating samples against the clock, until the rate is known well enough or the time is spent;
a warning of sources whose references fit other rows as well as their own, before anything is translated."""

import logging
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError, require
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory, ShardView, write_shard
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.scoring.lexical_learning import corpus_tables, drawn_rows, learn
from paraforge.corpus.scoring.lexical_table import LexicalTable, foreign_units, units_of
from paraforge.corpus.scoring.out_of_step import LINES, Blocks, warn_of
from paraforge.corpus.scoring.pairs import by_source
from paraforge.corpus.scoring.verdict import area, interval
from paraforge.translation.decoding.translator import Hypotheses, Translator, Usage
from paraforge.translation.memory.memory import HypothesisRows
from paraforge.translation.stage.population import Population, blocks

logger = logging.getLogger(__name__)

_LEAST_BLOCKS = 5
_MOST_BLOCKS = 60
_WARM_UP = 32
# Seconds of a block: long enough that a queue running empty at its end does not count.
_BLOCK_SECONDS = 6.0
# Sentences of a block where they are paid for; the first block warms up, and is part of the sample.
_PAID_BLOCK = 64
_DRAWS = 4000
_SMALLEST_BLOCK = 64
# Sentences from which tokens, bytes and failures are counted.
_MOST_COUNTED = 20_000
MOST_ROWS: Final = 100_000
"""Rows that the lexical table is learnt from: some ten seconds."""
JUDGED: Final = 20_000
FEWEST: Final = 100
"""Rows that a source needs to be judged."""
LEAST_AREA: Final = 0.9
"""Aligned bitext reaches 0.95 from 1,000 rows on; what was shifted by a row is below 0.86."""


@dataclass(frozen=True)
class Rate:
    """Seconds that a sentence takes on one device.

    seconds: best estimate. low, high: a bootstrap interval, 95 %, over blocks.
    blocks, sentences: how much was measured. block_seconds: seconds of each block.
    """

    seconds: float
    low: float
    high: float
    blocks: int
    sentences: int
    block_seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """What a sample showed.

    rate: seconds a sentence. load_seconds: until the model was ready. hypotheses: rows a sentence.
    target_tokens: of a sentence's best hypothesis, on average. hypothesis_bytes: of a row in Parquet.
    failed: share of sentences that could not be translated. memory: most bytes that the process held.
    device_memory: bytes taken on a GPU, 0 on a CPU.
    usage: what a server counted, and of how many sentences; None where nothing is paid for.
    """

    rate: Rate
    load_seconds: float
    hypotheses: float
    target_tokens: float
    hypothesis_bytes: float
    failed: float
    memory: int
    device_memory: int
    usage: tuple[Usage, int] | None = None


def measure(
    open_translator: Callable[[], Translator],
    population: Population,
    *,
    seconds: float,
    precision: float,
    sentences_per_task: int,
    device: str = "cpu",
    paid: bool = False,
    answers: dict[str, Hypotheses] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Measurement:
    """Translate blocks that have the lengths of the whole.

    open_translator: loads the model; timed. population: what is to be translated.
    seconds: no block begins later than this, but for the second.
    precision: half of the interval's width, relative to the rate, that is enough.
    sentences_per_task: the largest block. device: where the model is, to see what it takes there.
    paid: whether sentences are paid for: then a few hundred have to do, each asked for once.
    answers: of these by sentence, also if an error ends the sample. clock: seconds, rising.

    Raises InputError: there is nothing to translate.
    """
    if not population.sentences:
        raise InputError("nothing to translate: every row is rejected or has its translation")
    free = _free_device_memory(device)
    begun = clock()
    translator = open_translator()
    load_seconds = clock() - begun
    answers = {} if answers is None else answers
    if paid:
        kept = sum(len(stratum.kept) for stratum in population.strata.values())
        size = largest = max(1, min(_PAID_BLOCK, kept // (_LEAST_BLOCKS + 1)))
        source = _each_once(blocks(population, size), answers)
    else:
        warm_up = next(blocks(population, min(_WARM_UP, population.sentences), seed=2))
        _timed(translator, warm_up, clock)
        first = _timed(translator, warm_up, clock)[0] / len(warm_up)  # caches are warm now
        largest = min(sentences_per_task, population.sentences)
        size = int(min(largest, max(_SMALLEST_BLOCK, _BLOCK_SECONDS / max(first, 1e-9))))
        source = blocks(population, size)
    times: list[float] = []
    sample: list[Hypotheses] = []
    begun = clock()
    with progress(total=None, unit="sentences", description="sample") as bar:
        while block := next(source, None):
            check_interrupt()
            taken, results = _timed(translator, block, clock)
            if paid:
                answers.update(zip(block, results, strict=True))
                taken *= size / len(block)
            sample += results[: _MOST_COUNTED - len(sample)]
            bar.update(len(block))
            larger = int(min(largest, size * _BLOCK_SECONDS / max(taken, 1e-9)))
            if larger > 2 * size and clock() - begun < seconds / 2:
                # A large GPU is as long at a few sentences as at a thousand: how long it is at a block that
                # is far too short says nothing.
                size, times = larger, []
                source = blocks(population, size, seed=size)
                continue
            times.append(taken)
            # The first request to a server also opens the connection.
            timed = times[1:] if paid and len(times) > 1 else times
            rate = estimate(timed, size)
            spread = f", ±{_half(rate):.1%}" if math.isfinite(rate.high) else ""
            bar.status(f"{1 / rate.seconds:.1f} sentences/s{spread}")
            # To know it better than from as many sentences as there are would take longer than the work.
            known = paid or rate.sentences >= population.sentences or _half(rate) <= precision
            enough = rate.blocks >= _LEAST_BLOCKS and known
            late = clock() - begun > seconds and rate.blocks > 1  # one block says nothing of the spread
            if enough or late or rate.blocks >= _MOST_BLOCKS:
                break
    if not math.isfinite(rate.high):  # there was one sentence to pay for
        rate = replace(rate, low=rate.seconds, high=rate.seconds)
    rows = HypothesisRows()
    for result in sample:
        rows.add(result)
    usage = getattr(translator, "usage", None)
    best = [result.hypotheses[0].tokens for result in sample if result.hypotheses]
    table = rows.hypotheses()
    return Measurement(
        rate=rate,
        load_seconds=load_seconds,
        hypotheses=table.num_rows / len(sample),
        target_tokens=float(np.mean(best)) if best else 0.0,
        hypothesis_bytes=_parquet_bytes(table) / table.num_rows,
        failed=sum(result.failed is not None for result in sample) / len(sample),
        memory=_peak_memory(),
        device_memory=max(0, free - _free_device_memory(device)),
        usage=(usage, len(sample)) if paid and isinstance(usage, Usage) else None,
    )


def _each_once(source: Iterator[list[str]], answers: Container[str]) -> Iterator[list[str]]:
    """Blocks without sentences that have an answer, until one has no other."""
    for block in source:
        if not (left := [sentence for sentence in dict.fromkeys(block) if sentence not in answers]):
            return
        yield left


def _timed(
    translator: Translator, block: list[str], clock: Callable[[], float]
) -> tuple[float, list[Hypotheses]]:
    started = clock()
    results = list(translator.translate(iter(block)))
    return clock() - started, results


def _half(rate: Rate) -> float:
    return (rate.high - rate.low) / 2 / rate.seconds if len(rate.block_seconds) > 1 else math.inf


def estimate(times: list[float], size: int) -> Rate:
    """Rate and its 95 % interval from the seconds of blocks of ``size`` sentences each.

    The interval is a bootstrap over blocks, wider by Student's t over the normal quantile and by the bias of
    a variance of few, because a handful of blocks resampled look more alike than they are.
    """
    from scipy import stats

    taken = np.array(times)
    mean = float(taken.mean())
    count = len(taken)
    if count < 2:
        return Rate(mean / size, 0.0, math.inf, count, count * size, tuple(times))
    draws = np.random.default_rng(1).choice(taken, (_DRAWS, count)).mean(axis=1)
    low, high = np.percentile(draws, [2.5, 97.5])
    wider = float(stats.t.ppf(0.975, count - 1) / stats.norm.ppf(0.975) * math.sqrt(count / (count - 1)))
    return Rate(
        mean / size,
        max(0.0, mean - wider * (mean - float(low))) / size,
        (mean + wider * (float(high) - mean)) / size,
        count,
        count * size,
        tuple(round(seconds, 4) for seconds in times),
    )


def row_seconds(corpus: ShardDirectory, hypothesis_bytes: float) -> tuple[float, float]:
    """Seconds that a row costs beside its translation, and bytes that it has in the ingested shards.

    A shard is read and written twice, which is about what finding distinct sentences and joining the
    translations to their rows do.
    """
    index = max(range(len(corpus)), key=corpus.rows.__getitem__)
    rows = max(1, corpus.rows[index])
    started = time.perf_counter()
    table = corpus.read(index)
    filler = pa.array(["x" * max(1, int(hypothesis_bytes))] * table.num_rows, pa.string())
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2):
            write_shard(table.append_column("filler", filler), Path(folder) / f"{number}.parquet")
    seconds = time.perf_counter() - started
    return seconds / rows, sum(path.stat().st_size for path in corpus.paths) / max(1, corpus.total_rows)


def _parquet_bytes(table: pa.Table) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.parquet"
        write_shard(table, path)
        return path.stat().st_size


def _peak_memory() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _free_device_memory(device: str) -> int:
    """Free bytes of a GPU, whoever holds the others; 0 of anything else."""
    if not device.startswith("cuda"):
        return 0
    torch = require("torch", "")
    return int(torch.cuda.mem_get_info(device)[0]) if torch.cuda.is_available() else 0


def warn_of_misaligned_sources(ingested: Path, resources: Resources) -> dict[str, float]:
    """Warn of each source whose rows are hardly more similar to their own references than to other rows'.

    ingested: shard directory; only rows that are to be translated count. resources: threads.

    Returns by source the area under the ROC curve of its rows against rows with other references, 0 to 1,
    where that is below `LEAST_AREA` with 95 % confidence.
    """
    view = ShardView(ingested)
    rows = drawn_rows(corpus_tables(view, resources), MOST_ROWS)
    lexical = learn(rows)
    _warn_of_stretches(rows, lexical, view.total_rows)
    rows = rows.slice(0, JUDGED)
    foreign = rows["source_text"]
    found = {}
    for source, places in by_source(rows["source"]):
        # Drawn at random, so a row's neighbour is any other one of the source.
        own, other = (rows["reference"].take(pa.array(one)) for one in (places, np.roll(places, -1)))
        differs = np.array(own.to_pylist(), object) != np.array(other.to_pylist(), object)
        if differs.sum() < FEWEST:
            continue
        units = foreign_units(foreign.take(pa.array(places)))
        right, wrong = (
            lexical.similarities(units, units_of(tokenize_column(texts)))[differs] for texts in (own, other)
        )
        known = ~(np.isnan(right) | np.isnan(wrong))
        if known.sum() >= FEWEST:
            share = interval(area(right[known], wrong[known]), float(known.sum()))
            if share.high < LEAST_AREA:
                found[source] = share.value
    for source, value in sorted(found.items()):
        logger.warning(
            "source %s looks misaligned: its references hardly fit their own rows better than other rows "
            "(area under the ROC curve %.2f; of aligned bitext it is above 0.95). Compare both sides: one "
            "may lack a line. If its words are not separated by spaces, this means nothing.",
            source,
            value,
        )
    return found


def _warn_of_stretches(rows: pa.Table, lexical: LexicalTable, of_rows: int) -> None:
    """Warn of the lines of each source that are out of step, in blocks that have enough of the drawn rows."""
    rows = rows.filter(rows["line"].is_valid())
    if not rows.num_rows:
        return
    blocks = Blocks(LINES * math.ceil(2 * FEWEST * of_rows / (LINES * rows.num_rows)))
    foreign, reference = foreign_units(rows["source_text"]), units_of(tokenize_column(rows["reference"]))
    similarities = lexical.similarities(foreign, reference)
    blocks.add(rows.append_column("source_similarity", pa.array(similarities)))
    warn_of(blocks.out_of_step())
