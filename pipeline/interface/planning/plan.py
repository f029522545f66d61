"""Planning a translation: what the corpus needs, a sample's rate, and the time, price and disk of it."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.files import remove_directory, size
from paraforge.base.markdown import text_table
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.intake.bitext.ingest import ingest
from paraforge.interface.configuration import Parameters
from paraforge.interface.planning.measurement import Measurement, Rate, measure
from paraforge.translation.decoding.translator import Hypotheses, Usage
from paraforge.translation.engines import is_model_free, is_remote
from paraforge.translation.engines.server import Server, estimated_tokens
from paraforge.translation.memory.distinct import find_distinct, written_distinct
from paraforge.translation.memory.recall import recall
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.stage.population import Population, survey
from paraforge.translation.stage.quantisation import calibrated
from paraforge.translation.stage.remembering import known_segments, remember
from paraforge.translation.stage.sentences import EngineChoice, choose_engine, plan_workplace
from paraforge.translation.training.parameters import languages_of

logger = logging.getLogger(__name__)

# Starting a worker's process and importing what it needs, on top of loading the model.
PROCESS_SECONDS = 4.0
# Sending a task, reading and checking its shard, committing the result.
TASK_SECONDS = 0.06
# What a row costs on processors: finding distinct sentences, joining.
ROW_SECONDS = 2e-5
_LOAD_SECONDS = 10.0


@dataclass(frozen=True)
class Wall:
    """Hours on the clock with a number of devices, the ends of the 95% interval, and the devices' price."""

    devices: int
    hours: float
    low: float
    high: float
    cost: float | None


@dataclass(frozen=True)
class Tokens:
    """Tokens of a sentence at a server, prompt and answers, and their price if it is known.

    counted: whether the server counted them on a sample; else they are estimated from the texts.
    """

    input: float
    output: float
    counted: bool
    price: float | None


@dataclass(frozen=True)
class Plan:
    """What a translation will take.

    rows: of the corpus. sentences: distinct ones to translate; left: those that the memory does not know.
    rate: seconds per sentence; of 0 sentences if it was given. walls: time and price of what is left.
    tasks: of this many sentences each: sentences_per_task. disk: bytes, with intermediate files.
    failed: share of the sample that could not be translated. tokens: of a sentence at a server.
    """

    engine: str
    device: str
    rows: int
    sentences: int
    left: int
    rate: Rate
    load_seconds: float
    sentences_per_task: int
    disk: int
    walls: list[Wall]
    failed: float = 0.0
    tokens: Tokens | None = None


def ingested_corpus(parameters: Parameters, published: Path = Path("data/ingested")) -> ShardDirectory:
    """Ingest the corpus that the parameters name now into the work directory; ``dvc repro`` reuses it.

    published: what the stage ingest made last; a warning says if that is another corpus.

    Raises ConfigurationError or InputError if a source is missing or cannot be read.
    """
    output = parameters.resources.work / "plan" / "ingested"
    ingest(parameters.ingest, output, parameters.resources, languages_of(parameters.nmt))
    corpus = ShardDirectory(output)
    if published.is_dir() and ShardDirectory(published).digest != corpus.digest:
        logger.warning(
            "%s was made with other parameters or sources; this plan is for what the parameters say now",
            published,
        )
    return corpus


def model_path(parameters: Parameters, built: Path) -> Path:
    """Return the model to plan with: the ready one that the parameters name, or ``built`` by stage nmt.

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
            affixes=section.affixes.model_dump(),
        )
        return output
    if not (built / MODEL_FILE).is_file():
        raise InputError(
            "there is no model yet to measure with",
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

    parameters: sections ``translate`` and ``resources``. corpus: ingested shards. model: its directory.
    devices: numbers of devices to compare. price: of a device for an hour.
    seconds: for the sample. rate: sentences a second of a device, if it is known; then nothing is translated.
    sentences: plan for this number of sentences with the corpus' lengths.
    token_prices: of a million input and output tokens of a server, where they are known.

    Raises InputError if there is nothing to translate, or engine, model and device do not go together.
    """
    population = survey(corpus)
    if not population.sentences:
        raise InputError("nothing to translate: every row is rejected or has its translation")
    section, resources = parameters.translate, parameters.resources
    left, scale = population.sentences, 1.0 if sentences is None else sentences / population.sentences
    device, workers, sample = "given", 1, None
    if rate is None:
        choice = choose_engine(section.engine, model, section.options(), section.settings(), resources)
        workplace = plan_workplace(section.engine, resources, population.sentences)
        device, workers = workplace.devices[0], workplace.worker_count
        # The stage will ask the same and find the answer there.
        choice, _ = calibrated(choice, corpus, left, section.quantisation, workplace, resources)
        if section.memory:
            left -= _known_sentences(corpus, choice, resources)
        if not left and sentences is None:
            remedy = "Run 'dvc repro', or plan with --rate, which translates nothing."
            raise InputError("nothing to translate: the translation memory has every sentence", remedy=remedy)
        paid = is_remote(section.engine)
        answers: dict[str, Hypotheses] = {}
        try:
            sample = measure(
                lambda: choice.open(workplace.placement(device)),
                _unknown(population, choice, resources) if paid and section.memory else population,
                seconds=seconds,
                sentences_per_task=section.sentences_per_task or 4000,
                paid=paid,
                answers=answers,
            )
        finally:
            remember(choice, resources, answers)
        if paid and section.memory:
            left -= len(answers)
    given = 1 / (rate or 1)
    found = sample.rate if sample else Rate(given, given, given)
    left = left if sentences is None else sentences
    per_task = section.task_size(population.sentences, 1 / found.seconds, workers)
    load = sample.load_seconds if sample else _LOAD_SECONDS
    rows = math.ceil(population.rows * scale)
    walls = []
    for count in devices:
        started = load + (0.0 if resources.scheduler is None and count == 1 else PROCESS_SECONDS)
        hours, low, high = (
            (started + clock_seconds(left, each, per_task, count) + rows * ROW_SECONDS) / 3600
            for each in (found.seconds, found.low, found.high)
        )
        walls.append(Wall(count, hours, low, high, None if price is None else hours * count * price))
    server = getattr(section, section.engine, None)
    usage = sample.usage if sample else None
    return Plan(
        section.engine,
        device,
        rows,
        math.ceil(population.sentences * scale),
        left,
        found,
        load,
        per_task,
        _disk_bytes(population, corpus, sample, section.nbest, scale),
        walls,
        sample.failed if sample else 0.0,
        _tokens(server, population, section.nbest, usage, token_prices)
        if isinstance(server, Server)
        else None,
    )


def clock_seconds(sentences: int, seconds: float, per_task: int, devices: int) -> float:
    """Return the seconds on the clock until ``devices`` devices have translated all sentences.

    All tasks but the last one are alike, so that the last one begins when all rounds before it are over.
    """
    if not sentences:
        return 0.0
    tasks = math.ceil(sentences / per_task)
    whole = per_task * seconds + TASK_SECONDS
    rest = (sentences - (tasks - 1) * per_task) * seconds + TASK_SECONDS
    rounds, over = divmod(tasks - 1, devices)
    return max(rounds * whole + rest, (rounds + (over > 0)) * whole)


def _disk_bytes(
    population: Population, corpus: ShardDirectory, sample: Measurement | None, nbest: int, scale: float
) -> int:
    """Estimate the bytes of all files from ingest to publication, as texts compress (to 0.6) in Parquet."""
    row = sum(path.stat().st_size for path in corpus.paths) / max(1, corpus.total_rows)
    text = 0.6 * population.text_bytes / population.sentences
    made = 0.6 * sample.hypothesis_bytes if sample else text * nbest
    # Ingested, its parts and places; translated and published with 24 bytes of scores; memory and distinct.
    rows = population.rows * (1.85 * row + 4 + 2 * (nbest * row + made) + 48 * nbest)
    return round(scale * (rows + population.sentences * (2 * text + 67 + 4 * made)))


def _tokens(
    server: Server,
    population: Population,
    nbest: int,
    sample: tuple[Usage, int] | None,
    prices: tuple[float | None, float | None],
) -> Tokens:
    """Count a sentence's tokens as the server did on the sample, or estimate them from the texts."""
    counted = sample is not None and sample[0].input_tokens > 0
    if sample is not None and counted:
        given, made = (total / sample[1] for total in (sample[0].input_tokens, sample[0].output_tokens))
    else:
        means = [
            (stratum.sentences, sum(map(estimated_tokens, stratum.kept)) / max(1, len(stratum.kept)))
            for stratum in population.strata.values()
        ]
        text = sum(count * mean for count, mean in means) / population.sentences
        given = text + sum(estimated_tokens(one["content"]) + 4 for one in server.messages(""))
        made = server.samples_for(nbest) * (1 + text)
    known = prices != (None, None)
    price = (given * (prices[0] or 0) + made * (prices[1] or 0)) / 1e6 if known else None
    return Tokens(given, made, counted, price)


def _known_sentences(corpus: ShardDirectory, choice: EngineChoice, resources: Resources) -> int:
    """Count the distinct sentences that the translation memory or a killed run has translated."""
    segments = known_segments(choice, resources)
    if not segments:
        return 0
    work = resources.work.resolve()
    distinct = written_distinct(corpus, work / "translation" / "distinct")
    distinct = distinct or find_distinct(corpus, work / "plan" / "distinct", resources.worker_count())
    recalled = recall(distinct.keys, segments, [], work / "plan" / "recall")
    known = sum(int(np.count_nonzero(block >= 0)) for block in recalled.blocks())
    remove_directory(work / "plan" / "recall")
    return known


def _unknown(population: Population, choice: EngineChoice, resources: Resources) -> Population:
    """Leave sentences out of the samples that are known already, so that nothing is paid for twice."""
    place = resources.work.resolve() / "plan"
    place.mkdir(parents=True, exist_ok=True)
    texts = list(dict.fromkeys(text for one in population.strata.values() for text in one.kept))
    text_keys(pa.array(texts, pa.string())).astype("<u8").tofile(place / "keys.bin")
    recalled = recall(place / "keys.bin", known_segments(choice, resources), [], place / "recall")
    unknown = {texts[number] for number in recalled.unknown.tolist()}
    remove_directory(place / "recall")
    (place / "keys.bin").unlink()
    if not unknown:
        remedy = "Run 'dvc repro', or plan with --rate, which asks the server nothing."
        raise InputError("nothing to pay for: the translation memory knows the sentences", remedy=remedy)
    strata = {
        number: replace(stratum, kept=[text for text in stratum.kept if text in unknown])
        for number, stratum in population.strata.items()
    }
    return replace(population, strata=strata)


def plan_text(plans: dict[str, Plan], price: float | None) -> str:
    """Write plans for people, by pivot; several are translated one after the other."""
    lines = []
    for name, plan in plans.items():
        rate = plan.rate
        lines += [f"# {name}", ""] if len(plans) > 1 else []
        lines.append(
            f"{plan.rows:,} rows, {plan.sentences:,} distinct sentences, {plan.left:,} left to translate"
        )
        if rate.sentences:
            lines.append(
                f"sample: {rate.sentences:,} sentences on {plan.device}, {1 / rate.seconds:,.1f} sentences/s "
                f"(95% interval {1 / rate.high:,.1f} to {1 / rate.low if rate.low else math.inf:,.1f})"
            )
        if plan.failed:
            lines.append(f"{plan.failed:.2%} of the sample could not be translated")
        if plan.tokens:
            lines += _token_lines(plan.tokens, plan.left)
        task = min(plan.sentences_per_task, max(1, plan.left))
        lines.append(
            f"tasks of {task:,} sentences, {hours((task * rate.seconds + TASK_SECONDS) / 3600)} each: the "
            "work lost if the run is killed"
        )
        lines += [f"disk: about {size(plan.disk)}, with intermediate files", ""]
    walls = [
        [
            sum(values)
            for values in zip(*((one.hours, one.low, one.high, one.cost or 0) for one in each), strict=True)
        ]
        for each in zip(*(plan.walls for plan in plans.values()), strict=True)
    ]
    header = ["devices", "time", "from", "to", *([] if price is None else [f"cost at {price:g} an hour"])]
    counts = [wall.devices for wall in next(iter(plans.values())).walls]
    rows = [
        [str(count), *map(hours, wall[:3]), *([] if price is None else [f"{wall[3]:,.2f}"])]
        for count, wall in zip(counts, walls, strict=True)
    ]
    lines += [f"# {' + '.join(plans)}, one after the other", ""] if len(plans) > 1 else []
    return "\n".join([*lines, *text_table(header, rows, left=0)])


def _token_lines(tokens: Tokens, sentences: int) -> list[str]:
    how = "counted by the server on the sample" if tokens.counted else "a rough estimate from the texts"
    lines = [
        f"tokens: {tokens.input * sentences:,.0f} input, {tokens.output * sentences:,.0f} output "
        f"({tokens.input:.0f} and {tokens.output:.0f} per sentence, {how})"
    ]
    return (
        lines if tokens.price is None else [*lines, f"price of the tokens: {tokens.price * sentences:,.2f}"]
    )


def hours(value: float) -> str:
    """Write a time as seconds, minutes, hours or days, whichever reads best."""
    seconds = value * 3600
    if 0 < seconds < 1:
        return "under 1 s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{value:,.1f} h" if value < 96 else f"{value / 24:,.1f} days"
