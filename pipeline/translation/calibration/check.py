"""The check of quantised translation: before a corpus or a file is translated, and by hand."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from paraforge.decoding.translator import DecodingOptions, Placement
from paraforge.engines import ctranslate2
from paraforge.errors import InputError
from paraforge.files import hash_json, read_json, write_json
from paraforge.models.model import open_model
from paraforge.shards.resources import Resources
from paraforge.shards.step import Step, run_step
from paraforge.shards.store import ShardDirectory
from paraforge.translation.calibration.loss import (
    LIMIT,
    QUANTISED,
    BothWays,
    Check,
    QuantisationLoss,
    decided,
    measure_loss,
    sample_size,
    translated_both_ways,
)
from paraforge.translation.calibration.sample import bitext_sample, sampled, write_sample
from paraforge.translation.parameters import QuantisationParameters
from paraforge.translation.sentences import EngineChoice, Workplace, device_of_worker
from paraforge.versions import TRANSLATE

logger = logging.getLogger(__name__)

_VERSION = 2
_RECORD = "loss.json"
_BOTH = pa.schema(
    [
        pa.field("sentence", pa.int64(), nullable=False),
        pa.field("reference", pa.string()),
        pa.field("float32", pa.string()),
        pa.field("quantised", pa.string()),
        pa.field("loss", pa.float64()),
        pa.field("ruined", pa.int8()),
    ]
)


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
    measured is kept in the work directory for this corpus, model and options.

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
    size = sample_size(sentences, parameters.sentences)
    loss = sampled_loss(choice, corpus, size, workplace, resources) if size else None
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
    choice: EngineChoice, corpus: ShardDirectory, sentences: int, workplace: Workplace, resources: Resources
) -> QuantisationLoss | None:
    """Loss on a sample of the corpus, measured now or by an earlier run; None without any sentence. Raises
    IncompleteError: the sample could not be translated."""
    digests = [record.sha256 for record in corpus.records]
    key = hash_json([_VERSION, TRANSLATE, digests, choice.parameters(), choice.weights, sentences])[:40]
    directory = resources.work.resolve() / "translation" / "calibration" / key
    try:
        return QuantisationLoss(**read_json(directory / _RECORD))
    except (InputError, TypeError):
        pass
    if not write_sample(corpus, sentences, directory / "sample"):
        return None
    logger.info("translating a sample in float32 and in %s, to compare", choice.options.compute_type)
    run_step(
        calibration_step(choice, workplace),
        [directory / "sample"],
        directory / "hypotheses",
        resources,
        workers=workplace.workers,
    )
    rows = ShardDirectory(directory / "hypotheses").read(0).to_pydict()
    losses = [float("nan") if loss is None else loss for loss in rows["loss"]]
    found = BothWays(rows["float32"], rows["quantised"], losses, rows["ruined"])
    loss = measure_loss(found, choice.options.compute_type, rows["reference"])
    write_json(directory / _RECORD, asdict(loss))
    return loss


def calibration_step(choice: EngineChoice, workplace: Workplace) -> Step:
    """The step from ``sentence, source_text, reference`` to the best hypotheses of both compute types."""
    return Step(
        name="calibration",
        version=TRANSLATE,
        parameters=choice.parameters(),
        fingerprints={"model": choice.weights},
        build=build_calibration,
        arguments={"choice": choice, "workplace": workplace},
        device="cuda" if workplace.on_gpu else "cpu",
        libraries=choice.libraries(),
    )


def build_calibration(choice: EngineChoice, workplace: Workplace) -> Callable[[pa.Table], pa.Table]:
    """Gives the function that translates a sample on this worker's device, first quantised, then in full."""
    assert choice.model is not None
    placement = workplace.placement(device_of_worker(workplace))
    model = open_model(choice.model, choice.engine, verify=False)

    def translate_sample(table: pa.Table) -> pa.Table:
        found = translated_both_ways(
            model, choice.options, placement, table.column("source_text").to_pylist()
        )
        losses = pa.array(found.losses, pa.float64(), from_pandas=True)  # no number is null
        given = [table.column("sentence"), table.column("reference")]
        return pa.table([*given, found.full, found.quantised, losses, found.ruined], schema=_BOTH)

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
    sentences: what :func:`~paraforge.translation.text_file.read_sentences` gave for it.
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
        raise InputError("no sentence to translate: every row is refused, or has its translation", bitext)
    found = translated_both_ways(open_model(model, ctranslate2.NAME), options, placement, sources)
    return measure_loss(found, options.compute_type, references)
