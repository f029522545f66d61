"""Translating a sample against the clock, until the rate is known well enough or the time is over."""

import math
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from paraforge.base.errors import InputError
from paraforge.base.interrupts import check_interrupt
from paraforge.base.progress import progress
from paraforge.translation.decoding.translator import Hypotheses, Translator, Usage
from paraforge.translation.stage.population import Population, blocks

_LEAST_BLOCKS, _MOST_BLOCKS = 5, 60
_WARM_UP = 32
# Seconds of a block: long enough that a queue running empty at its end does not count.
_BLOCK_SECONDS = 6.0
_SMALLEST_BLOCK = 64
# Sentences of a block that is paid for; the first block warms up and is part of the sample.
_PAID_BLOCK = 64


@dataclass(frozen=True)
class Rate:
    """Seconds that a sentence takes on one device, with a 95% interval, and the sentences measured."""

    seconds: float
    low: float
    high: float
    sentences: int = 0


def estimate(times: Sequence[float], size: int) -> Rate:
    """Estimate the rate from the seconds of blocks with ``size`` sentences each.

    The interval is Student's t over blocks, which all have the lengths of the whole; one block gives no upper
    end.
    """
    from scipy import stats

    mean, count = float(np.mean(times)), len(times)
    if count < 2:
        return Rate(mean / size, 0.0, math.inf, size)
    half = float(stats.t.ppf(0.975, count - 1) * np.std(times, ddof=1) / math.sqrt(count))
    return Rate(mean / size, max(0.0, mean - half) / size, (mean + half) / size, count * size)


@dataclass(frozen=True)
class Measurement:
    """What a sample showed.

    rate: seconds per sentence. load_seconds: until the model was ready. failed: share of failed sentences.
    hypothesis_bytes: UTF-8 bytes of a sentence's hypotheses, on average.
    usage: tokens that a server counted, and for how many sentences; None if nothing is paid for.
    """

    rate: Rate
    load_seconds: float
    failed: float
    hypothesis_bytes: float
    usage: tuple[Usage, int] | None = None


def measure(
    open_translator: Callable[[], Translator],
    population: Population,
    *,
    seconds: float,
    sentences_per_task: int,
    precision: float = 0.03,
    paid: bool = False,
    answers: dict[str, Hypotheses] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Measurement:
    """Translate blocks that have the lengths of the whole.

    open_translator: loads the model; timed. population: what is to be translated.
    seconds: no block but the second begins later than this. sentences_per_task: the largest block.
    precision: half of the interval's width, relative to the rate, that is enough.
    paid: whether sentences are paid for: then a few hundred must do, each asked for once.
    answers: filled with the paid answers by sentence, also if an error ends the sample. clock: seconds.

    Raises InputError if there is nothing to translate.
    """
    if not population.sentences:
        raise InputError("nothing to translate: every row is rejected or has its translation")
    begun = clock()
    translator = open_translator()
    load_seconds = clock() - begun
    answers = {} if answers is None else answers

    def timed(block: list[str]) -> tuple[float, list[Hypotheses]]:
        started = clock()
        results = list(translator.translate(iter(block)))
        return clock() - started, results

    if paid:
        kept = sum(len(stratum.kept) for stratum in population.strata.values())
        size = largest = max(1, min(_PAID_BLOCK, kept // (_LEAST_BLOCKS + 1)))
        source = _each_once(blocks(population, size), answers)
    else:
        warm_up = next(blocks(population, min(_WARM_UP, population.sentences), seed=2))
        timed(warm_up)
        first = timed(warm_up)[0] / len(warm_up)  # caches are warm now
        largest = min(sentences_per_task, population.sentences)
        size = int(min(largest, max(_SMALLEST_BLOCK, _BLOCK_SECONDS / max(first, 1e-9))))
        source = blocks(population, size)
    times: list[float] = []
    translated = failed = text_bytes = 0
    begun = clock()
    with progress(total=None, unit="sentences", description="sample") as bar:
        while block := next(source, None):
            check_interrupt()
            taken, results = timed(block)
            translated += len(block)
            failed += sum(result.failed is not None for result in results)
            text_bytes += sum(len(one.text.encode()) for result in results for one in result.hypotheses)
            bar.update(len(block))
            if paid:
                answers.update(zip(block, results, strict=True))
                taken *= size / len(block)
            larger = int(min(largest, size * _BLOCK_SECONDS / max(taken, 1e-9)))
            if larger > 2 * size and clock() - begun < seconds / 2:
                # A large GPU takes as long for a few sentences as for a thousand: begin again.
                size, times, source = larger, [], blocks(population, larger, seed=larger)
                continue
            times.append(taken)
            # The first request to a server also opens the connection.
            rate = estimate(times[1:] if paid and len(times) > 1 else times, size)
            # More sentences than there are would take longer than the work.
            known = paid or rate.sentences >= population.sentences
            known = known or rate.high - rate.low <= 2 * precision * rate.seconds
            late = clock() - begun > seconds and len(times) > 1  # one block says nothing of the spread
            if (len(times) >= _LEAST_BLOCKS + paid and known) or late or len(times) >= _MOST_BLOCKS:
                break
    if not math.isfinite(rate.high):  # there was one sentence to pay for
        rate = Rate(rate.seconds, rate.seconds, rate.seconds, rate.sentences)
    usage = getattr(translator, "usage", None)
    counted = (usage, translated) if paid and isinstance(usage, Usage) else None
    return Measurement(rate, load_seconds, failed / translated, text_bytes / translated, counted)


def _each_once(source: Iterator[list[str]], answers: Container[str]) -> Iterator[list[str]]:
    """Yield blocks without sentences that have an answer, until one has no other."""
    for block in source:
        if not (left := [sentence for sentence in dict.fromkeys(block) if sentence not in answers]):
            return
        yield left
