"""Translating the calibration sample in both compute types, and what a run does about the loss."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass

import pyarrow as pa

from paraforge.decoding.engines import ctranslate2
from paraforge.decoding.translator import Placement
from paraforge.errors import InputError
from paraforge.files import hash_json, read_json, write_json
from paraforge.models.model import open_model
from paraforge.shards.resources import Resources
from paraforge.shards.step import Step, run_step
from paraforge.shards.store import ShardDirectory
from paraforge.translation.calibration.hypotheses import FULL, QUANTISED, translated_both_ways
from paraforge.translation.calibration.loss import QuantisationLoss, measure_loss
from paraforge.translation.calibration.sample import write_sample
from paraforge.translation.parameters import QuantisationParameters
from paraforge.translation.sentences import EngineChoice, Workplace, device_of_worker
from paraforge.versions import TRANSLATE

logger = logging.getLogger(__name__)

_VERSION = 1
_RECORD = "loss.json"
_BOTH = pa.schema(
    [
        pa.field("sentence", pa.int64(), nullable=False),
        pa.field("reference", pa.string()),
        pa.field("float32", pa.string()),
        pa.field("quantised", pa.string()),
        pa.field("score_loss", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Calibration:
    """What was found out on the sample and what followed from it.

    Attributes:
        chosen: compute type of the run.
        limit: chrF that may be lost.
        loss: of the compute type that was asked for.
    """

    chosen: str
    limit: float
    loss: QuantisationLoss


def is_quantised(choice: EngineChoice) -> bool:
    """Whether weights are rounded to integers, so that a model may come out worse than it is."""
    return choice.engine == ctranslate2.NAME and choice.options.compute_type in QUANTISED


def calibrated(
    choice: EngineChoice,
    corpus: ShardDirectory,
    parameters: QuantisationParameters,
    workplace: Workplace,
    resources: Resources,
) -> tuple[EngineChoice, Calibration | None]:
    """The engine that the run shall use: the one that was chosen, or float32 if that loses too much.

    Whoever asks again gets the same answer without another translation, whatever machine it runs on: what was
    measured is kept in the work directory for this corpus, model and options.

    Args:
        choice: engine with its options; nothing happens if it is not quantised.
        corpus: ingested shards.
        parameters: what to do, limit, size of the sample.
        workplace: where the sample is translated: where the run will be.
        resources: the work directory.

    Returns:
        The choice, and what was found out; None where nothing was to find out.

    Raises:
        InputError: more is lost than allowed, and ``check`` is ``error``.
        IncompleteError: the sample could not be translated.
    """
    if not is_quantised(choice) or parameters.check == "skip":
        return choice, None
    loss = sampled_loss(choice, corpus, parameters.sentences, workplace, resources)
    if loss is None:
        logger.warning("%s is not checked: there is no sentence for a sample", choice.options.compute_type)
        return choice, None
    if not loss.exceeds(parameters.limit):
        logger.info("%s; it is kept (limit %.2f)", loss, parameters.limit)
        return choice, Calibration(loss.compute_type, parameters.limit, loss)
    if parameters.check == "error":
        raise InputError(
            f"{loss}; that is more than translate.quantisation.limit, {parameters.limit:.2f}",
            choice.model,
            remedy="Say translate.compute_type: float32, or allow more, or translate.quantisation.check: "
            "fallback.",
        )
    logger.warning(
        "%s: more than the limit, %.2f, so everything is translated in float32", loss, parameters.limit
    )
    return in_full(choice), Calibration(FULL, parameters.limit, loss)


def in_full(choice: EngineChoice) -> EngineChoice:
    """The same choice in float32; shards that were made in float32 without any check are its own."""
    return dataclasses.replace(choice, options=dataclasses.replace(choice.options, compute_type=FULL))


def sampled_loss(
    choice: EngineChoice, corpus: ShardDirectory, sentences: int, workplace: Workplace, resources: Resources
) -> QuantisationLoss | None:
    """Loss on a sample of the corpus, measured now or by an earlier run; None without any sentence.

    Raises:
        IncompleteError: the sample could not be translated.
    """
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
    rows = ShardDirectory(directory / "hypotheses").read(0)
    loss = measure_loss(rows, choice.options.compute_type)
    write_json(directory / _RECORD, asdict(loss))
    return loss


def calibration_step(choice: EngineChoice, workplace: Workplace) -> Step:
    """The step from ``sentence, cs, reference`` to the best hypotheses of both compute types."""
    return Step(
        name="calibration",
        version=TRANSLATE,
        parameters=choice.parameters(),
        fingerprints={"model": choice.weights},
        build=build_calibration,
        arguments={"choice": choice, "workplace": workplace},
        device="cuda" if workplace.on_gpu else "cpu",
    )


def build_calibration(choice: EngineChoice, workplace: Workplace) -> Callable[[pa.Table], pa.Table]:
    """Gives the function that translates a sample on this worker's device, first quantised, then in full."""
    assert choice.model is not None
    placement = Placement(device_of_worker(workplace), workplace.threads, workplace.batch_tokens)
    model = open_model(choice.model, choice.engine, verify=False)

    def translate_sample(table: pa.Table) -> pa.Table:
        found = translated_both_ways(model, choice.options, placement, table.column("cs").to_pylist())
        score_loss = pa.array(found.losses, pa.float64(), from_pandas=True)  # no number is null
        columns = [
            table.column("sentence"),
            table.column("reference"),
            found.full,
            found.quantised,
            score_loss,
        ]
        return pa.table(columns, schema=_BOTH)

    return translate_sample
