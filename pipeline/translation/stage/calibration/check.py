"""The check of quantised translation: before a corpus or a file is translated, and by hand."""

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.files import hash_json, read_json
from paraforge.base.sealed import is_whole, write_sealed_json
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.step import Step, run_step
from paraforge.base.shards.store import ShardDirectory
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import ctranslate2
from paraforge.translation.models.model import open_model
from paraforge.translation.stage.calibration.loss import (
    LIMIT,
    QUANTISED,
    Check,
    QuantisationLoss,
    decided,
    measure_loss,
    sample_size,
    translated_both_ways,
)
from paraforge.translation.stage.parameters import QuantisationParameters
from paraforge.translation.stage.population import (
    bitext_sample,
    sampled,
    waiting_among,
    write_sample,
)
from paraforge.translation.stage.sentences import EngineChoice, Workplace, device_of_worker
from paraforge.versions import TRANSLATE

logger = logging.getLogger(__name__)

_VERSION = 3
_RECORD, _SAMPLE = "loss.json", "sample"
# Share of a corpus that has to be of the one that was measured, for the answer to hold.
_SAME_CORPUS = 0.5


@dataclass(frozen=True)
class Calibration:
    """What was found out on the sample and what followed from it.

    chosen: compute type of the run. limit: nats a token that may be lost.
    loss: of the compute type that was asked for; None where there was too little text to measure it.
    """

    chosen: str
    limit: float
    loss: QuantisationLoss | None


def is_quantised(choice: EngineChoice) -> bool:
    """Whether weights are rounded to integers, so that a model may come out worse than it is."""
    return choice.engine == ctranslate2.NAME and choice.options.compute_type in QUANTISED


def calibrated(
    choice: EngineChoice,
    corpus: ShardDirectory,
    sentences: int,
    parameters: QuantisationParameters,
    workplace: Workplace,
    resources: Resources,
) -> tuple[EngineChoice, Calibration | None]:
    """The engine that the run shall use: the one that was chosen, or float32 if that may lose too much.

    Whoever asks again gets the same answer without another translation, whatever machine it runs on: what was
    measured is kept in the work directory for this model and options. It holds for an edited corpus, too, as
    long as at least half of its sentences were there then: a row more or less never changes the type, and so
    never has everything translated again.

    choice: engine with its options; nothing happens if it is not quantised. corpus: ingested shards.
    sentences: distinct sentences that are to be translated; the sample is in proportion to them.
    parameters: what to do, limit, size of the sample.
    workplace: where the sample is translated: where the run will be. resources: the work directory.

    Returns the choice, and what was found out; None where nothing was to find out.

    Raises:
        InputError: more may be lost than allowed, and ``check`` is ``error``.
        IncompleteError: the sample could not be translated.
    """
    if not is_quantised(choice) or parameters.check == "skip":
        return choice, None
    loss = sampled_loss(choice, corpus, sentences, parameters.sentences, workplace, resources)
    chosen = decided(
        loss,
        choice.options.compute_type,
        parameters.check,
        parameters.maximum_loss,
        model=choice.model,
        remedy="Say translate.compute_type: float32, or allow more in translate.quantisation.maximum_loss, "
        "or translate.quantisation.check: fallback.",
    )
    options = choice.options.with_changes(compute_type=chosen)
    # Shards that were made in float32 without any check are the same ones.
    return dataclasses.replace(choice, options=options), Calibration(chosen, parameters.maximum_loss, loss)


def sampled_loss(
    choice: EngineChoice,
    corpus: ShardDirectory,
    sentences: int,
    wanted: int,
    workplace: Workplace,
    resources: Resources,
) -> QuantisationLoss | None:
    """Loss on a sample of the corpus, measured now or by an earlier run on this corpus or on one before an
    edit; None where there is too little text.

    sentences: distinct sentences of the corpus. wanted: of the sample, if the corpus is large enough.

    Raises IncompleteError: the sample could not be translated.
    """
    root = resources.work.resolve() / "translation" / "calibration"
    asked = hash_json([_VERSION, TRANSLATE, choice.parameters(), choice.weights, wanted])[:20]
    directory = root / f"{asked}-{corpus.digest[:20]}"
    known = _measured(directory) or _measured_before(root, asked, corpus, sentences)
    if known is not None:
        return known[0]
    size = sample_size(sentences, wanted)
    if not size or not write_sample(corpus, size, directory / _SAMPLE):
        return None
    logger.info("translating a sample in float32 and in %s, to compare", choice.options.compute_type)
    run_step(
        calibration_step(choice, workplace),
        [directory / _SAMPLE],
        directory / "hypotheses",
        resources,
        workers=workplace.workers,
    )
    rows = ShardDirectory(directory / "hypotheses").read(0)
    loss = measure_loss(rows, choice.options.compute_type, rows["reference"].to_pylist())
    write_sealed_json(directory / _RECORD, {"loss": asdict(loss), "sentences": sentences})
    return loss


def _measured(directory: Path) -> tuple[QuantisationLoss, int] | None:
    """What was measured on a corpus, and how many sentences that had."""
    if not is_whole(directory / _RECORD):
        return None
    try:
        record = read_json(directory / _RECORD)
        return QuantisationLoss(**record["loss"]), int(record["sentences"])
    except (InputError, KeyError, TypeError, ValueError):
        return None


def _measured_before(
    root: Path, asked: str, corpus: ShardDirectory, sentences: int
) -> tuple[QuantisationLoss, int] | None:
    """What was measured on the corpus that most of this one's sentences are of, if that is half of them."""
    found = {path.parent: _measured(path.parent) for path in sorted(root.glob(f"{asked}-*/{_RECORD}"))}
    samples: dict[Path, set[str]] = {}
    for directory, known in found.items():
        with contextlib.suppress(InputError, IncompleteError):
            if known is not None:
                sample = ShardDirectory(directory / _SAMPLE).read(0, ["source_text"])
                samples[directory] = set(sample.column("source_text").to_pylist())
    if not samples:
        return None
    here = waiting_among(corpus, set.union(*samples.values()))
    shares = {}
    for directory, sample in samples.items():
        measured = found[directory]
        assert measured is not None
        # The sample says which share of the measured corpus is here, and so how much of this one is of it.
        shares[directory] = measured[1] * len(sample & here) / max(1, len(sample)) / max(1, sentences)
    best = max(shares, key=lambda directory: shares[directory])
    if shares[best] < _SAME_CORPUS:
        return None
    logger.info("the check of this compute type is of the corpus before it was edited")
    return found[best]


def calibration_step(choice: EngineChoice, workplace: Workplace) -> Step:
    """The step from ``sentence, source_text, reference`` to the best hypotheses of both compute types."""
    return Step(
        name="calibration",
        version=TRANSLATE,
        parameters=choice.parameters(),
        fingerprints={"model": choice.weights},
        build=build_calibration,
        arguments={"choice": choice, "workplace": workplace},
        files=() if choice.model is None else (choice.model,),
        device="cuda" if workplace.on_gpu else "cpu",
        libraries=choice.libraries(),
    )


def build_calibration(choice: EngineChoice, workplace: Workplace) -> Callable[[pa.Table], pa.Table]:
    """Gives the function that translates a sample on this worker's device, first quantised, then in full."""
    assert choice.model is not None
    placement = workplace.placement(device_of_worker(workplace))
    model = open_model(choice.model, choice.engine, verify=False)

    def translate_sample(table: pa.Table) -> pa.Table:
        sentences = table.column("source_text").to_pylist()
        given = table.select(["sentence", "reference"])
        both = translated_both_ways(model, choice.options, placement, sentences)
        schema = pa.schema([*given.schema, *both.schema])
        return pa.table([*given.columns, *both.columns], schema=schema)

    return translate_sample


def checked(
    model: Path,
    options: DecodingOptions,
    placement: Placement,
    path: Path,
    sentences: Iterator[str],
    check: Check = "fallback",
) -> tuple[DecodingOptions, Iterator[str]]:
    """What to translate a file with, the type that was asked for or float32, and what to translate.

    model: directory of the model.
    options: of the engine ``ctranslate2``; nothing happens if their compute type is not quantised.
    placement: where the sample is translated: where everything will be.
    path: of the input, ``-`` for standard input.
    sentences: what :func:`~paraforge.translation.stage.text_file.read_sentences` gave for it.
    check: ``fallback`` takes float32 where too much may be lost, ``error`` stops, ``skip`` does not look.

    Raises:
        InputError: too much may be lost, and ``check`` is ``error``; a line of the file cannot be read.
        IncompleteError: the sample could not be translated.
    """
    options = ctranslate2.resolve(options, placement)
    if options.compute_type not in QUANTISED:
        return options, sentences
    if check == "skip":
        logger.warning("%s is not compared with float32: its loss is not known", options.compute_type)
        return options, sentences
    sample, sentences = sampled(path, sentences)
    loss = None
    if sample:
        logger.info("translating %d sentences in %s and in float32", len(sample), options.compute_type)
        found = translated_both_ways(open_model(model, ctranslate2.NAME), options, placement, sample)
        loss = measure_loss(found, options.compute_type)
    remedy = "Say --compute-type float32, or --check fallback or skip."
    chosen = decided(loss, options.compute_type, check, LIMIT, model=model, remedy=remedy)
    return options.with_changes(compute_type=chosen), sentences


def loss_on_bitext(
    model: Path,
    bitext: Path,
    options: DecodingOptions,
    placement: Placement,
    *,
    columns: tuple[int, int],
    sentences: int,
) -> QuantisationLoss:
    """Translate a sample of a bitext in float32 and in another compute type, and compare.

    model: directory of a model.
    bitext: directory of ingested shards, or a TSV, compressed or not. options: with the compute type.
    columns: of a TSV, counted from 0: the reference and the foreign side.

    Raises InputError: the compute type is not a quantised one, or there is nothing to translate.
    """
    options = ctranslate2.resolve(options, placement)
    if options.compute_type not in QUANTISED:
        raise InputError(
            f"{options.compute_type} does not round weights to integers, nothing is lost",
            remedy="Say int8, int16, int8_float32, ...",
        )
    sources, references = bitext_sample(bitext, columns, sentences)
    if not sources:
        raise InputError("no sentence to translate: every row is rejected, or has its translation", bitext)
    found = translated_both_ways(open_model(model, ctranslate2.NAME), options, placement, sources)
    return measure_loss(found, options.compute_type, references)
