"""Measures how long one device takes for a sentence, on samples of all sentences."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paraforge.base.progress import progress
from paraforge.translation.decoding.translator import Hypotheses, Translator, Usage
from paraforge.translation.stage.population import Population, blocks

# The first block also fills caches, or opens the connection to a server: it is not counted.
_LEAST_BLOCKS, _MOST_BLOCKS = 6, 60
# Seconds of a block: long enough that the queue running empty at its end hardly matters.
_BLOCK_SECONDS = 6.0
# Sentences in the smallest block, and in each block of an engine that charges for tokens.
_SMALLEST_BLOCK = 64
PAID_SENTENCES = _LEAST_BLOCKS * _SMALLEST_BLOCK
"""Most sentences in the sample of an engine that charges for tokens."""


@dataclass(frozen=True)
class Rate:
    """The time that one device takes for a sentence.

    seconds, low, high: seconds per sentence, with a 95% interval. sentences: sentences measured.
    load_seconds: to load the model; by default a guess.
    tokens: mean input and output tokens per sentence, as a server counted them; None if not counted.
    """

    seconds: float
    low: float
    high: float
    sentences: int = 0
    load_seconds: float = 10.0
    tokens: tuple[float, float] | None = None


def estimate(times: Sequence[float], size: int) -> Rate:
    """Estimate the rate from the seconds of blocks with ``size`` sentences each.

    The interval is Student's t over blocks; one block gives no upper end.
    """
    from scipy import stats

    if len(times) < 2:
        return Rate(sum(times) / size, 0.0, math.inf, size * len(times))
    mean, count = float(np.mean(times)), len(times)
    half = float(stats.t.ppf(0.975, count - 1) * np.std(times, ddof=1) / math.sqrt(count))
    return Rate(mean / size, max(0.0, mean - half) / size, (mean + half) / size, count * size)


def measure(
    open_translator: Callable[[], Translator],
    population: Population,
    *,
    seconds: float,
    sentences_per_task: int,
    precision: float = 0.03,
    answers: dict[str, Hypotheses] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Rate:
    """Translate blocks of sentences, and measure the seconds per sentence of average length.

    The seconds of a block are assumed to be proportional to its bytes of text.

    open_translator: loads the model; the loading is timed.
    population: the sentences to translate; at least one.
    seconds: time limit; at least two blocks are translated, and no other begins after this time.
    sentences_per_task: largest number of sentences in a block.
    precision: stop when half the width of the confidence interval is at most this share of the rate.
    answers: give a dictionary for a server that charges for each sentence. Then at most a few hundred
        sentences are translated, none twice, and the dictionary is filled with the hypotheses of each
        sentence, even if an error ends the measurement.
    clock: returns the time in seconds.
    """
    begun = clock()
    translator = open_translator()
    load_seconds = clock() - begun
    largest = min(sentences_per_task, population.sentences)
    size = min(_SMALLEST_BLOCK, largest)
    if answers is not None:
        size = largest = max(1, min(size, population.sentences // _LEAST_BLOCKS))
    source, times, translated = blocks(population, size), list[float](), 0
    mean = population.text_bytes / population.sentences + 1  # so that an empty sentence has a length
    begun = clock()
    with progress(total=None, unit="sentences", description="sample") as bar:
        while len(times) < _MOST_BLOCKS:
            block = next(source)
            if answers is not None:
                block = [sentence for sentence in dict.fromkeys(block) if sentence not in answers]
                if not block:
                    break
            started = clock()
            results = list(translator.translate(iter(block)))
            length = sum(len(sentence.encode()) + 1 for sentence in block)
            taken = (clock() - started) * size * mean / length
            translated += len(block)
            bar.update(len(block))
            if answers is not None:
                answers.update(zip(block, results, strict=True))
            larger = int(min(largest, size * _BLOCK_SECONDS / max(taken, 1e-9)))
            if larger > 1.5 * size and clock() - begun < seconds / 2:
                # A large GPU takes as long for a few sentences as for a thousand: use larger blocks.
                size, times, source = larger, [], blocks(population, larger)
                continue
            times.append(taken)
            rate = estimate(times[1:], size)
            # Do not translate more sentences than the whole population has.
            known = answers is not None or rate.sentences >= population.sentences
            known = known or rate.high - rate.low <= 2 * precision * rate.seconds
            late = clock() - begun > seconds and len(times) > 2  # two counted blocks: one has no variance
            if late or (known and len(times) >= _LEAST_BLOCKS):
                break
    rate = estimate(times[1:] or times, size)
    if not math.isfinite(rate.high):  # only one block was counted
        rate = replace(rate, low=rate.seconds, high=rate.seconds)
    usage, tokens = getattr(translator, "usage", None), None
    if answers is not None and isinstance(usage, Usage) and usage.input_tokens:
        tokens = usage.input_tokens / translated, usage.output_tokens / translated
    return replace(rate, load_seconds=load_seconds, tokens=tokens)
