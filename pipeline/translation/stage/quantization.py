"""Checks on a sample whether a quantized model is as good as the original, before a run uses it."""

import dataclasses
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from paraforge.base.errors import IncompleteError
from paraforge.base.files import hash_json, read_json_or_none, write_json
from paraforge.base.shards.libraries import installed
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.scheduler import open_jobs
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.shards.transfer import JobFiles
from paraforge.translation.decoding.translator import DecodingOptions, Hypothesis, Placement
from paraforge.translation.engines import ctranslate2, open_translator
from paraforge.translation.memory.distinct import survey
from paraforge.translation.models.model import TranslationModel, open_model
from paraforge.translation.stage.sentences import EngineChoice, Workplace, device_of_worker
from paraforge.versions import TRANSLATE

logger = logging.getLogger(__name__)

FULL = "float32"
QUANTIZED = frozenset({"int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16"})
# Nats per token. Measured (docs/results.md): a smaller beam that costs 0.5 chrF costs 0.03 nats.
LIMIT = 0.02
SENTENCES = 1000
# With fewer sentences, it cannot be shown that less than one in a hundred is ruined.
MINIMUM = 200
# For fewer sentences, the check would take longer than it saves.
_WORTHWHILE = 2000
_RUINED = 0.01
# A hypothesis is ruined if float32 finds it less probable than its own by this many nats per token.
_HOPELESS = 1.0
# 95% of a normal distribution is below this.
_SIGMAS = 1.645


@dataclass(frozen=True)
class QuantizationLoss:
    """How much worse quantized hypotheses are than those of float32, with upper bounds.

    compute_type: compute type of the quantized model. sentences: number in the sample.
    identical: share (0-1) with the same best hypothesis.
    loss: mean nats per token by which float32 finds its own hypotheses more probable.
    bound: upper bound on the loss with 95% confidence. Both are None if fewer than two sentences have a
        hypothesis in both types.
    ruined: share of sentences (0-1) that are ruined only in the quantized type, minus the share only in
        float32.
    ruined_bound: upper bound on it with 95% confidence.
    """

    compute_type: str
    sentences: int
    identical: float
    loss: float | None
    bound: float | None
    ruined: float
    ruined_bound: float

    def within(self, limit: float) -> bool:
        """Return whether the bounds are below ``limit`` and one ruined sentence in a hundred."""
        little = self.bound is not None and self.bound < limit
        return self.sentences >= MINIMUM and little and self.ruined_bound < _RUINED

    def __str__(self) -> str:
        lost = "a loss that cannot be measured"
        if self.loss is not None:
            lost = f"a loss of {self.loss:.4f} nats per token, at most {self.bound:.4f}"
        return (
            f"{self.compute_type} compared with float32 on {self.sentences} sentences: {lost}; "
            f"{max(0.0, self.ruined):.1%} of the sentences ruined, at most {self.ruined_bound:.1%}; "
            f"{self.identical:.1%} the same"
        )


def compare(
    model: TranslationModel, options: DecodingOptions, placement: Placement, sentences: Sequence[str]
) -> QuantizationLoss:
    """Translate a sample with CTranslate2 as ``options`` say, and in float32 without a shortlist, and compare
    the best hypotheses. Raises IncompleteError if no sentence of it could be translated.
    """

    def opened(compute_type: str, shortlist: object = False) -> ctranslate2.CTranslate2Translator:
        chosen = options.with_changes(compute_type=compute_type, shortlist=shortlist)
        translator = open_translator(ctranslate2.NAME, model, chosen, placement)
        assert isinstance(translator, ctranslate2.CTranslate2Translator)  # this model also scores
        return translator

    quantized = _best(opened(options.compute_type, options.shortlist), sentences)
    # The first model is freed before the second is loaded, because a device may have room for only one.
    translator = opened(FULL)
    full = _best(translator, sentences)
    other = [place for place in range(len(sentences)) if full[place].text != quantized[place].text]
    losses = [0.0] * len(sentences)
    sources = [sentences[place] for place in other]
    own = translator.score(sources, [full[place].text for place in other])
    theirs = translator.score(sources, [quantized[place].text for place in other])
    for place, best, quantized_best in zip(other, own, theirs, strict=True):
        losses[place] = best - quantized_best
    ruined = [
        _is_ruined(quantized_best, loss) - _is_ruined(best, -loss)
        for quantized_best, best, loss in zip(quantized, full, losses, strict=True)
    ]
    return measure_loss(options.compute_type, losses, ruined, len(sentences) - len(other))


def _best(translator: ctranslate2.CTranslate2Translator, sentences: Sequence[str]) -> list[Hypothesis]:
    results = list(translator.translate(sentences))
    failures = [result.failed for result in results if result.failed]
    if len(failures) == len(results):
        raise IncompleteError(f"no sentence of the sample could be translated: {failures[0]}")
    return [result.hypotheses[0] if result.hypotheses else Hypothesis("", 0.0, 0) for result in results]


def _is_ruined(hypothesis: Hypothesis, loss: float) -> bool:
    return hypothesis.empty or hypothesis.runaway or loss > _HOPELESS


def measure_loss(
    compute_type: str, differences: Sequence[float], ruined: Sequence[int], identical: int
) -> QuantizationLoss:
    """Return the loss on a non-empty sample, with upper bounds of one-sided 95% intervals.

    differences: mean log-probability per token in float32 minus that of the quantized type, both from the
        model in float32 (natural log); 0 if the best hypotheses are equal, NaN if one is empty.
    ruined: 1 if only the quantized type's is empty, a loop or ruined, -1 if only that of float32 is, else 0.
    identical: number of sentences with the same best hypothesis in both types.
    """
    losses = np.array(differences)
    losses = losses[np.isfinite(losses)]
    loss = bound = None
    if len(losses) > 1:
        error = float(losses.std(ddof=1)) / math.sqrt(len(losses))
        loss = round(float(losses.mean()), 6)
        bound = round(float(losses.mean()) + _SIGMAS * error, 6)
    count, worse, better = len(ruined), ruined.count(1), ruined.count(-1)
    # Paired shares with half an observation added to each cell (Agresti and Min 2005), so that zero
    # observations do not give a bound of zero.
    difference = (worse - better) / (count + 2)
    spread = math.sqrt(worse + better + 1 - (worse - better) ** 2 / (count + 2)) / (count + 2)
    return QuantizationLoss(
        compute_type=compute_type,
        sentences=count,
        identical=round(identical / count, 4),
        loss=loss,
        bound=bound,
        ruined=round((worse - better) / count, 4),
        ruined_bound=round(difference + _SIGMAS * spread, 6),
    )


def decide(loss: QuantizationLoss | None, compute_type: str) -> str:
    """Return the compute type to use: the requested one only if it is shown to lose little, else float32.

    loss: loss on a sample; None if there is too little text. compute_type: the requested one.
    """
    if loss is not None and loss.within(LIMIT):
        logger.info("%s; it is used (limit %g nats a token)", loss, LIMIT)
        return compute_type
    if loss is None:
        reason = f"there is too little text to check {compute_type} (it needs {_WORTHWHILE:,} sentences)"
    else:
        reason = (
            f"{loss}; the sample does not show a loss below {LIMIT:g} nats per token and 1% of the sentences"
        )
    logger.warning("%s: everything is translated in float32", reason)
    return FULL


def calibrate(
    choice: EngineChoice,
    corpus: ShardDirectory,
    sentences: int,
    workplace: Workplace,
    resources: Resources,
) -> tuple[EngineChoice, QuantizationLoss | None]:
    """Return the engine for the run: the chosen one, or float32 if that can lose too much.

    The result is cached in the work directory for this model, options and version of the engine, so the next
    run needs no new sample.

    choice: engine with its options; nothing happens if it is not quantized. corpus: ingested shards.
    sentences: number of distinct sentences to translate.
    workplace: where to translate the sample, the same as for the run. resources: the work directory.

    Returns the choice and the loss on the sample; None if there was nothing to check or too little text.

    Raises IncompleteError if the sample could not be translated.
    """
    if choice.engine != ctranslate2.NAME or choice.options.compute_type not in QUANTIZED:
        return choice, None
    loss = _sampled_loss(choice, corpus, sentences, workplace, resources)
    options = choice.options.with_changes(compute_type=decide(loss, choice.options.compute_type))
    if options.compute_type == FULL:
        options = options.with_changes(shortlist=False)
    # These are also the options of a run in float32 without a check, so both use the same shards.
    return dataclasses.replace(choice, options=options), loss


def _sampled_loss(
    choice: EngineChoice, corpus: ShardDirectory, sentences: int, workplace: Workplace, resources: Resources
) -> QuantizationLoss | None:
    """Return the loss on a sample of a corpus, measured now or earlier; None if there is too little text."""
    directory = resources.work / "translation" / "calibration"
    record = directory / _key(choice.weights, choice.options) / "loss.json"
    if (known := _known(record)) is not None or sentences < _WORTHWHILE:
        return known
    logger.info("comparing float32 and %s on a sample", choice.options.compute_type)
    texts = survey(corpus, SENTENCES).sample
    files = JobFiles() if choice.model is None else JobFiles(kept=(choice.model,))
    gpu, workers = workplace.on_gpu, workplace.workers
    with open_jobs(resources, len(texts), jobs=1, workers=workers, gpu=gpu, travels=True) as jobs:
        arguments = [(choice, workplace, texts)]
        (loss,) = jobs.results(measure_on_worker, arguments, description="calibration", files=[files])
    write_json(record, asdict(loss))
    return loss


def _key(weights: str, options: DecodingOptions) -> str:
    """Return the hash of everything besides the sample that a measured loss depends on."""
    versions = installed(ctranslate2.CTranslate2Translator.LIBRARIES)
    return hash_json([TRANSLATE, weights, options.recorded(), versions])[:40]


def _known(record: Path) -> QuantizationLoss | None:
    try:
        return QuantizationLoss(**(read_json_or_none(record) or {}))
    except TypeError:
        return None


def measure_on_worker(
    choice: EngineChoice, workplace: Workplace, sentences: Sequence[str]
) -> QuantizationLoss:
    """Measure the loss on this worker's device."""
    assert choice.model is not None
    model = open_model(choice.model, verify=False)
    placement = workplace.placement(device_of_worker(workplace))
    return compare(model, choice.options, placement, sentences)
