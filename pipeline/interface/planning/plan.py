"""Planning a translation: look at the corpus, translate a sample, extrapolate, keep the plan."""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.base.files import read_json, remove_directory
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.intake.bitext.ingest import ingest
from paraforge.interface.configuration import Parameters
from paraforge.interface.planning.forecast import (
    Facts,
    Forecast,
    Tokens,
    added,
    best_task,
    forecast,
    tokens_of,
)
from paraforge.interface.planning.measurement import Measurement, Rate, measure, row_seconds
from paraforge.interface.planning.progress import Progress, progress_of, save_plan, unknown_among
from paraforge.translation.decoding.translator import Hypotheses
from paraforge.translation.engines import is_model_free, is_remote
from paraforge.translation.engines.server import Server
from paraforge.translation.models.importing import import_model
from paraforge.translation.models.model import MODEL_FILE
from paraforge.translation.stage.population import Population, survey
from paraforge.translation.stage.quantisation import calibrated
from paraforge.translation.stage.remembering import remember
from paraforge.translation.stage.sentences import EngineChoice, Workplace, choose_engine, plan_workplace
from paraforge.translation.stage.translate import translation_key
from paraforge.translation.training.parameters import NmtParameters, languages_of
from paraforge.translation.training.stage import training_key

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """A plan: what was found, what follows from it, and which size of a task is best.

    choice: engine, options and model. device: where the sample was translated. facts: what was measured.
    measurement: the sample; None where the rate was given. forecast: hours, cost, disk.
    best_task: sentences of a task that are right for a device of this rate.
    progress: what is known of it already; None where nothing is, or it was not looked up.
    left: like ``forecast``, of what is not known.
    tokens: that a server takes for a sentence; None with other engines.
    """

    choice: EngineChoice
    device: str
    facts: Facts
    measurement: Measurement | None
    forecast: Forecast
    best_task: int
    progress: Progress | None = None
    left: Forecast | None = None
    tokens: Tokens | None = None


@contextmanager
def tidied(work: Path) -> Iterator[None]:
    """Around a plan: what it prepares below ``work/plan`` is removed again when it ends with an error."""
    place = work / "plan"
    made = [path for path in (place / "ingested", place / "model") if not path.exists()]
    try:
        yield
    except BaseException:
        for path in made:
            remove_directory(path)
        with suppress(OSError):
            place.rmdir()
        raise


def ingested_corpus(parameters: Parameters, published: Path = Path("data/ingested")) -> ShardDirectory:
    """The corpus that the parameters say now, ingested into the work directory.

    Nothing is read twice: what an earlier ingest left in the work directory is reused, and ``dvc repro``
    reuses what is ingested here.

    parameters: sections ``ingest``, ``nmt`` and ``resources``.
    published: what the stage ingest made last, perhaps of other parameters; then a warning says so.

    Raises:
        ConfigurationError: a source is missing, or is not in the languages that section ``nmt`` names.
        InputError: a source cannot be read.
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


def model_path(parameters: Parameters, corpus: ShardDirectory, built: Path) -> Path:
    """The model to plan with: the ready one that the parameters name, or what the stage nmt has trained.

    parameters: sections ``nmt``, ``translate`` and ``resources``.
    corpus: what a model is trained on, unless the parameters name another bitext.
    built: ``models/nmt``. If it was trained with other parameters or pairs, a warning says so.

    Raises InputError: the model is still to be trained.
    """
    section = parameters.nmt
    if is_model_free(parameters.translate.engine):
        return built
    if section.model not in ("train", "none"):
        # As the stage nmt will import it, for whatever engine.
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
            remedy="Run 'dvc repro nmt' first, or give the rate of a device with --rate.",
        )
    signature = str((read_json(built / MODEL_FILE).get("trained_on") or {}).get("signature"))
    own_bitext = section.model == "train" and section.bitext is None
    if own_bitext and not any(signature.startswith(key) for key in _possible_keys(section, corpus)):
        logger.warning(
            "%s was not trained with these parameters and pairs; the plan measures with it all the same",
            built,
        )
    return built


def _possible_keys(section: NmtParameters, corpus: ShardDirectory) -> list[str]:
    """How the signature of a model that was trained like this begins, on whatever machine that was."""
    meant = section.training.precision
    keys = []
    for precision in ("auto", "float32", "bfloat16") if meant == "auto" else (meant,):
        training = section.training.model_copy(update={"precision": precision})
        keys.append(training_key(section.model_copy(update={"training": training}), corpus)[:8])
    return [f"key:{key}|" for key in keys]


def make_plan(
    parameters: Parameters,
    corpus: ShardDirectory,
    model: Path,
    *,
    devices: Sequence[int],
    price: float | None = None,
    seconds: float = 90.0,
    precision: float = 0.03,
    rate: float | None = None,
    sentences: int | None = None,
    token_prices: tuple[float | None, float | None] = (None, None),
) -> Plan:
    """Plan the translation of a corpus.

    parameters: sections ``translate`` and ``resources``. corpus: ingested shards.
    model: directory of the model. devices: numbers of devices to compare. price: of a device for an hour.
    seconds: what the sample may take. precision: relative half width of the interval that is enough.
    rate: sentences a second of a device, if it is known; then nothing is translated.
    sentences: plan for this number of distinct sentences, with the same lengths instead of the corpus' own.
    token_prices: of a million input and output tokens of a server, where they are known.

    Raises InputError: nothing to translate, or engine, model and device do not go together.
    """
    if not corpus.total_rows:
        raise InputError("the corpus has no rows")
    population = survey(corpus)
    resources = parameters.resources
    section = parameters.translate
    options = section.options()
    if rate is not None:
        choice = EngineChoice(section.engine, options, section.settings(), "unknown", None)
        workplace = Workplace(1, ("given",), 1, 0)
        measurement = None
    else:
        if not population.sentences:
            raise InputError("nothing to translate: every row is rejected or has its translation")
        choice = choose_engine(section.engine, model, options, section.settings(), resources)
        workplace = plan_workplace(section.engine, resources, population.sentences)
        # The stage will ask the same and find the answer there.
        choice, _ = calibrated(
            choice, corpus, population.sentences, section.quantisation, workplace, resources
        )
        known = section.memory and sentences is None
        if known and (so_far := progress_of(corpus, choice, resources)) and not so_far.sentences_left:
            raise InputError(
                "nothing to translate: the translation memory has every sentence",
                remedy="Run 'dvc repro', or plan with --rate, which translates nothing.",
            )
        paid = is_remote(section.engine)
        answers: dict[str, Hypotheses] = {}
        try:
            measurement = measure(
                lambda: choice.open(workplace.placement(workplace.devices[0])),
                _unknown(population, choice, resources) if paid and section.memory else population,
                seconds=seconds,
                precision=precision,
                sentences_per_task=section.sentences_per_task or 4000,
                device=workplace.devices[0],
                paid=paid,
                answers=answers,
            )
        finally:
            remember(choice, resources, answers)
    tokens: Tokens | None = None
    server = getattr(section, section.engine, None)
    if isinstance(server, Server):
        sample = None if measurement is None else measurement.usage
        tokens = tokens_of(server, population, section.nbest, sample, token_prices)
    per_second = rate if measurement is None else 1 / measurement.rate.seconds
    size = section.task_size(population.sentences, per_second or 0.0, workplace.worker_count)
    facts = _facts(population, corpus, size, measurement, rate)
    if measurement is not None:
        key = translation_key(corpus, choice)
        save_plan(resources.work, key, facts, {"device": workplace.devices[0]})
    if sentences is not None:
        scale = sentences / max(1, facts.sentences)
        facts = replace(facts, sentences=sentences, rows=math.ceil(facts.rows * scale))
    local = resources.scheduler is None
    found = forecast(facts, devices, price, in_process=local)
    progress: Progress | None = None
    left: Forecast | None = None
    if measurement is not None and sentences is None and section.memory:
        progress = progress_of(corpus, choice, resources)
    if progress is not None:
        rest = replace(facts, sentences=progress.sentences_left)
        left = forecast(rest, devices, price, in_process=local)
    best = best_task(facts.seconds)
    return Plan(choice, workplace.devices[0], facts, measurement, found, best, progress, left, tokens)


def summed(plans: Sequence[Plan]) -> Plan:
    """The plan of several pivots, which are translated one after the other: rates are their means, and what
    no sum has is the first one's."""
    first = plans[0]
    sentences = [plan.facts.sentences for plan in plans]

    def means(of: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
        weights = [count / max(1, sum(sentences)) for count in sentences]
        return {
            name: sum(getattr(one, name) * weight for one, weight in zip(of, weights, strict=True))
            for name in names
        }

    tokens = [plan.tokens for plan in plans if plan.tokens is not None]
    begun = any(plan.progress for plan in plans)
    done = [plan.progress or Progress(plan.facts.sentences, 0, plan.facts.rows, 0) for plan in plans]
    return replace(
        first,
        facts=replace(
            first.facts,
            rows=sum(plan.facts.rows for plan in plans),
            sentences=sum(sentences),
            **means([plan.facts for plan in plans], ("seconds", "low", "high")),
        ),
        measurement=None,
        forecast=added([plan.forecast for plan in plans]),
        progress=Progress(*(sum(each) for each in zip(*map(astuple, done), strict=True))) if begun else None,
        left=added([plan.left or plan.forecast for plan in plans]) if begun else None,
        tokens=replace(tokens[0], **means(tokens, ("input", "output")))
        if len(tokens) == len(plans)
        else None,
    )


def _unknown(population: Population, choice: EngineChoice, resources: Resources) -> Population:
    """The population with samples of what the translation memory does not know. Raises InputError: it knows
    all of them."""
    texts = [text for stratum in population.strata.values() for text in stratum.kept]
    unknown = unknown_among(texts, choice, resources)
    if not unknown:
        raise InputError(
            "nothing to pay for: the translation memory knows the sentences",
            remedy="Run 'dvc repro', or plan with --rate, which asks the server nothing.",
        )
    strata = {
        number: replace(stratum, kept=[text for text in stratum.kept if text in unknown])
        for number, stratum in population.strata.items()
    }
    return replace(population, strata=strata)


def _facts(
    population: Population,
    corpus: ShardDirectory,
    sentences_per_task: int,
    measurement: Measurement | None,
    rate: float | None,
) -> Facts:
    mean_bytes = population.text_bytes / max(1, population.sentences)
    known: dict[str, Any] = {}
    if measurement is None:
        assert rate is not None
        found = Rate(1 / rate, 1 / rate, 1 / rate, 0, 0)
        hypothesis_bytes = mean_bytes * 0.8
        known["load_seconds"] = 10.0
    else:
        found = measurement.rate
        hypothesis_bytes = measurement.hypothesis_bytes
        taken = ("load_seconds", "hypotheses", "failed", "target_tokens", "memory", "device_memory")
        known = {name: getattr(measurement, name) for name in taken}
    per_row, row_bytes = row_seconds(corpus, hypothesis_bytes)
    return Facts(
        rows=population.rows,
        sentences=population.sentences,
        text_bytes=mean_bytes,
        seconds=found.seconds,
        low=found.low,
        high=found.high,
        sentences_per_task=sentences_per_task,
        hypothesis_bytes=hypothesis_bytes,
        row_bytes=row_bytes,
        row_seconds=per_row,
        **known,
    )
