"""Plans a translation: times a sample, and estimates time, price and disk for all sentences."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import remove_directory, size
from paraforge.base.markdown import text_table
from paraforge.base.progress import progress
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.work import WorkDirectory
from paraforge.intake.bitext.ingest import ingest
from paraforge.interface.configuration import Parameters
from paraforge.interface.query.pairs import duration
from paraforge.translation.decoding.translator import Hypotheses, Translator, Usage
from paraforge.translation.engines import is_model_free, is_remote
from paraforge.translation.memory.distinct import Population, blocks, find_distinct, survey, written_distinct
from paraforge.translation.memory.recall import recall
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.stage.quantization import calibrate
from paraforge.translation.stage.remembering import known_segments, remember
from paraforge.translation.stage.round_trip import forward_resources
from paraforge.translation.stage.sentences import EngineChoice, choose_engine, plan_workplace
from paraforge.translation.training.parameters import languages_of

# The first block also fills caches, or opens the connection to a server: it is not counted.
_LEAST_BLOCKS, _MOST_BLOCKS = 6, 60
# Seconds of a block: long enough that the queue running empty at its end hardly matters.
_BLOCK_SECONDS = 6.0
# Sentences in the smallest block, and in each block of an engine that charges for tokens.
_SMALLEST_BLOCK = 64
_PAID_SENTENCES = _LEAST_BLOCKS * _SMALLEST_BLOCK
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
    start = clock()
    translator = open_translator()
    load_seconds = clock() - start
    largest = min(sentences_per_task, population.sentences)
    size = min(_SMALLEST_BLOCK, largest)
    if answers is not None:
        size = largest = max(1, min(size, population.sentences // _LEAST_BLOCKS))
    source, times, translated = blocks(population, size), list[float](), 0
    mean = population.text_bytes / population.sentences + 1  # so that an empty sentence has a length
    start = clock()
    with progress(total=None, unit="sentences", description="sample") as bar:
        while len(times) < _MOST_BLOCKS:
            block = next(source)
            if answers is not None:
                block = [sentence for sentence in dict.fromkeys(block) if sentence not in answers]
                if not block:
                    break
            block_start = clock()
            results = list(translator.translate(iter(block)))
            length = sum(len(sentence.encode()) + 1 for sentence in block)
            block_seconds = (clock() - block_start) * size * mean / length
            translated += len(block)
            bar.update(len(block))
            if answers is not None:
                answers.update(zip(block, results, strict=True))
            larger = int(min(largest, size * _BLOCK_SECONDS / max(block_seconds, 1e-9)))
            if larger > 1.5 * size and clock() - start < seconds / 2:
                # A large GPU takes as long for a few sentences as for a thousand: use larger blocks.
                size, times, source = larger, [], blocks(population, larger)
                continue
            times.append(block_seconds)
            rate = estimate(times[1:], size)
            # Do not translate more sentences than the whole population has.
            is_precise = answers is not None or rate.sentences >= population.sentences
            is_precise = is_precise or rate.high - rate.low <= 2 * precision * rate.seconds
            is_late = clock() - start > seconds and len(times) > 2  # two counted blocks: one has no variance
            if is_late or (is_precise and len(times) >= _LEAST_BLOCKS):
                break
    rate = estimate(times[1:] or times, size)
    if not math.isfinite(rate.high):  # only one block was counted
        rate = replace(rate, low=rate.seconds, high=rate.seconds)
    usage, tokens = getattr(translator, "usage", None), None
    if answers is not None and isinstance(usage, Usage) and usage.input_tokens:
        tokens = usage.input_tokens / translated, usage.output_tokens / translated
    return replace(rate, load_seconds=load_seconds, tokens=tokens)


# Starting a worker's process and importing what it needs, on top of loading the model.
PROCESS_SECONDS = 4.0
# Sending a task, reading and checking its shard, committing the result.
TASK_SECONDS = 0.06
# Finding the distinct sentences and joining their translations to the rows; for each row.
ROW_SECONDS = 2e-5


@dataclass(frozen=True)
class Wall:
    """Wall-clock hours with a number of devices, with a 95% interval, and the cost of the devices."""

    devices: int
    hours: float
    low: float
    high: float
    cost: float | None


@dataclass(frozen=True)
class Plan:
    """The forecast for a translation.

    sentences: number of distinct sentences. left: number of them that are not in the translation memory.
    rate: seconds per sentence. If the user gave the rate, its number of measured sentences is 0.
    walls: hours and cost of the sentences that are left, for each number of devices.
    disk: bytes of all files, including intermediate ones.
    token_price: price of all tokens of the sentences that are left; None if unknown.
    """

    sentences: int
    left: int
    rate: Rate
    disk: int
    walls: list[Wall]
    token_price: float | None = None


def forward_of(parameters: Parameters) -> Parameters:
    """Return the parameters of a round trip's forward translation."""
    changed = {
        "nmt": parameters.nmt.reversed(),
        "translate": parameters.translate.forward_parameters(),
        "resources": forward_resources(parameters.resources),
    }
    return parameters.model_copy(update=changed)


def ingested_corpus(parameters: Parameters) -> ShardDirectory:
    """Ingest the corpus that the parameters name into the work directory; return its shards.

    Raises ConfigurationError or InputError if a source is missing or cannot be read.
    """
    work = parameters.resources.work / "plan"
    ingest(parameters.ingest, work / "ingested", parameters.resources, languages_of(parameters.nmt))
    return ShardDirectory(work / "ingested")


def model_path(parameters: Parameters, built: Path) -> Path:
    """Return the directory of the model to measure: ``built``, or the existing model that is configured.

    built: output directory of stage nmt.

    Raises InputError if the model is not trained yet.
    """
    section = parameters.nmt
    if is_model_free(parameters.translate.engine):
        return built
    if section.model not in ("train", "none"):
        output = parameters.resources.work / "plan" / "model"
        import_model(
            section.model,
            output,
            source_language=section.source_language,
            target_language=section.target_language,
        )
        return output
    if not (built / MODEL_FILE).is_file():
        raise InputError(
            "there is no model yet, so the speed cannot be measured",
            built,
            remedy="Run 'dvc repro nmt' first, or pass the rate of a device with --rate.",
        )
    return built


def make_plan(
    parameters: Parameters,
    corpus: ShardDirectory,
    model: Path,
    *,
    devices: Sequence[int],
    price: float | None = None,
    seconds: float = 90.0,
    rate: float | None = None,
    sentences: int | None = None,
    token_prices: tuple[float | None, float | None] = (None, None),
) -> Plan:
    """Plan the translation of a corpus.

    corpus: output of stage ingest. model: see :func:`model_path`. devices: numbers of devices to compare.
    price: price of one device per hour. seconds: time limit for the sample.
    rate: sentences per second, if known; then no sample is translated.
    sentences: number of distinct sentences, to plan for a larger or smaller corpus of the same kind.
    token_prices: price of a million input tokens and of a million output tokens at a server.

    Raises InputError if there is nothing to translate, or if the translation memory has every sentence.
    """
    section, resources = parameters.translate, parameters.resources
    population = survey(corpus, maximum=section.maximum_sentences)
    if not population.sentences:
        raise InputError("nothing to translate: every row is rejected or has its translation")
    left, scale = population.sentences, 1.0 if sentences is None else sentences / population.sentences
    workers = 1
    if rate is not None:
        measured = Rate(1 / rate, 1 / rate, 1 / rate)
    else:
        choice = choose_engine(section.engine, model, section.options(), section.settings(), resources)
        workplace = plan_workplace(section.engine, resources, population.sentences)
        workers = workplace.worker_count
        # Stage translate makes the same check, and reuses this result.
        if section.check_quantized:
            choice, _ = calibrate(choice, corpus, left, workplace, resources)
        left, to_ask = _left_sentences(corpus, choice, population, section.maximum_sentences, resources)
        if not left and (sentences is None or is_remote(section.engine)):  # a server would be paid again
            remedy = "Run 'dvc repro', or plan with --rate, which translates nothing."
            message = "nothing to translate: the translation memory has every sentence"
            raise InputError(message, remedy=remedy)
        answers: dict[str, Hypotheses] | None = {} if is_remote(section.engine) else None
        try:
            measured = measure(
                lambda: choice.open(workplace.placement(workplace.devices[0])),
                replace(population, sample=to_ask),
                seconds=seconds,
                sentences_per_task=section.sentences_per_task or 4000,
                answers=answers,
            )
        finally:
            remember(choice, resources, answers or {})
        if answers:
            left, _ = _left_sentences(corpus, choice, population, section.maximum_sentences, resources)
    left = left if sentences is None else sentences
    per_task = section.task_size(population.sentences, 1 / measured.seconds, workers)
    walls = []
    for count in devices:
        startup = measured.load_seconds
        startup += 0.0 if resources.scheduler is None and count == 1 else PROCESS_SECONDS
        startup += math.ceil(population.rows * scale) * ROW_SECONDS
        hours, low, high = (
            (startup + clock_seconds(left, per_sentence, per_task, count)) / 3600
            for per_sentence in (measured.seconds, measured.low, measured.high)
        )
        walls.append(Wall(count, hours, low, high, None if price is None else hours * count * price))
    token_price = None
    if measured.tokens and token_prices != (None, None):
        prices = zip(measured.tokens, token_prices, strict=True)
        token_price = left * sum(number * (price or 0) for number, price in prices) / 1e6
    disk = round(scale * _disk_bytes(population, corpus, section.nbest))
    return Plan(math.ceil(population.sentences * scale), left, measured, disk, walls, token_price)


def clock_seconds(sentences: int, seconds: float, per_task: int, devices: int) -> float:
    """Return the seconds that ``devices`` devices need for all sentences; exact to one task.

    seconds: of one device, per sentence. per_task: sentences in a task.
    """
    tasks = math.ceil(sentences / per_task)
    all_tasks = sentences * seconds + tasks * TASK_SECONDS
    return max(all_tasks / devices, min(sentences, per_task) * seconds + TASK_SECONDS if tasks else 0.0)


def _disk_bytes(population: Population, corpus: ShardDirectory, nbest: int) -> int:
    """Estimate the bytes of all files from ingest to publication; Parquet compresses texts to about 60%."""
    row = sum(path.stat().st_size for path in corpus.paths) / max(1, corpus.total_rows)
    text = 0.6 * population.text_bytes / population.sentences
    # Ingested corpus with its parts and line numbers; translated and published corpus with 24 bytes of
    # scores per pair; translation memory and distinct sentences.
    rows = population.rows * (1.85 * row + 4 + 2 * nbest * (row + text) + 48 * nbest)
    return round(rows + population.sentences * (2 * text + 67 + 4 * nbest * text))


def _left_sentences(
    corpus: ShardDirectory,
    choice: EngineChoice,
    population: Population,
    maximum: int | None,
    resources: Resources,
) -> tuple[int, list[str]]:
    """Count the distinct sentences that are neither in the translation memory nor in a killed run's files.

    Returns this number and the sentences to measure with. For a server they are drawn from the sentences
    without a translation, so that none is paid for twice; otherwise they are the population's sample.
    """
    segments = known_segments(choice, resources)
    if not segments:
        return population.sentences, population.sample
    place = WorkDirectory("plan", resources.work.resolve())
    threads = resources.worker_count()
    with place.lock():  # a second plan would remove files that this one reads
        work = place.path
        distinct = written_distinct(corpus, work.parent / "translation" / "distinct", maximum)
        distinct = distinct or find_distinct(corpus, work / "distinct", threads, maximum)
        recalled = recall(distinct.keys, segments, [], work / "recall")
        known = sum(int(np.count_nonzero(block >= 0)) for block in recalled.blocks())
        unknown, sample = recalled.unknown, population.sample
        if len(unknown) and is_remote(choice.engine):
            draw = np.random.default_rng(0)
            number = min(len(unknown), _PAID_SENTENCES)
            places = np.sort(draw.choice(len(unknown), number, replace=False, shuffle=False))
            texts = pa.concat_arrays([*distinct.texts(corpus, unknown[places])])
            sample = texts.take(draw.permutation(number)).to_pylist()
        remove_directory(work / "recall")
    return len(distinct) - known, sample


def plan_text(plans: dict[str, Plan], price: float | None) -> str:
    """Write plans as text, by pivot; several pivots are translated one after the other."""
    lines = []
    for name, plan in plans.items():
        rate = plan.rate
        lines += [f"# {name}", ""] if len(plans) > 1 else []
        lines.append(f"{plan.sentences:,} distinct sentences, {plan.left:,} left to translate")
        if rate.sentences:
            slowest, fastest = 1 / rate.high, 1 / rate.low if rate.low else math.inf
            lines.append(
                f"{1 / rate.seconds:,.1f} sentences/s on one device "
                f"(95% interval {slowest:,.1f} to {fastest:,.1f})"
            )
        if rate.tokens:
            counts = [f"{mean * plan.left:,.0f}" for mean in rate.tokens]
            cost = "" if plan.token_price is None else f", price {plan.token_price:,.2f}"
            lines.append(f"tokens: {counts[0]} input, {counts[1]} output{cost}")
        lines += [f"disk: about {size(plan.disk)}, with intermediate files", ""]
    header = ["devices", "time", "from", "to", *([] if price is None else [f"cost at {price:g} an hour"])]
    rows = []
    for walls in zip(*(plan.walls for plan in plans.values()), strict=True):
        times = (3600 * sum(getattr(wall, name) for wall in walls) for name in ("hours", "low", "high"))
        costs = [] if price is None else [f"{sum(wall.cost or 0 for wall in walls):,.2f}"]
        rows.append([str(walls[0].devices), *map(duration, times), *costs])
    lines += [f"# {' + '.join(plans)}, one after the other", ""] if len(plans) > 1 else []
    return "\n".join([*lines, *text_table(header, rows, left=0)])
