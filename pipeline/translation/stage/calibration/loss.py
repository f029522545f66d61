"""What quantisation costs on a sample: by how much less probable the float32 model finds what it says."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from paraforge.base.errors import IncompleteError, InputError
from paraforge.translation.decoding.translator import DecodingOptions, Hypothesis, Placement
from paraforge.translation.engines import ctranslate2, open_translator
from paraforge.translation.models.model import TranslationModel

logger = logging.getLogger(__name__)

Check = Literal["fallback", "error", "skip"]

FULL = "float32"
QUANTISED = frozenset({"int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16"})
# Nats a token. Measured (docs/results.md): a smaller beam that costs 0.5 chrF costs 0.03 of them.
LIMIT = 0.02
SENTENCES = 1000
# Fewer cannot show that less than one sentence in a hundred is ruined.
MINIMUM = 200
# Sentences of the text for one of the sample, which takes as long as four: int8, float32 and scores.
SHARE = 40
_RUINED = 0.01
# A hypothesis that the model finds this many nats a token less probable than the other one is no translation.
_HOPELESS = 1.0
# 95 % of a normal distribution are below.
_SIGMAS = 1.645


# Of each sentence of a sample the best hypothesis in both types, empty where there is none.
BOTH_WAYS = pa.schema(
    [
        pa.field("float32", pa.string()),
        pa.field("quantised", pa.string()),
        # Mean log-probability of a token of the first minus that of the second, both by the model in float32,
        # natural logarithm; 0 where they are the same, null where one is empty.
        pa.field("loss", pa.float64()),
        # 1 where only the second is empty, a loop or hopeless, -1 where only the first is, else 0.
        pa.field("ruined", pa.int8()),
    ]
)


@dataclass(frozen=True)
class QuantisationLoss:
    """By how much quantised hypotheses are worse than those of float32, with what it may be at most.

    compute_type: of the quantised model. sentences: in the sample.
    identical: share of them (0-1) whose best hypothesis is the same.
    loss: nats a token by which float32 finds its own hypotheses more probable, on average.
    bound: the loss is below this with a confidence of 95 %. Both are None where fewer than two sentences have
        a hypothesis in both types.
    ruined: share of sentences (0-1) that are ruined in the quantised type alone, minus the share that are in
        float32 alone.
    ruined_bound: that share is below this with a confidence of 95 %.
    chrf_float32, chrf: of both against the references, 0 to 100; None without references.
    """

    compute_type: str
    sentences: int
    identical: float
    loss: float | None
    bound: float | None
    ruined: float
    ruined_bound: float
    chrf_float32: float | None = None
    chrf: float | None = None

    def within(self, limit: float) -> bool:
        """Whether it is shown that less than ``limit`` is lost, and less than one sentence in a hundred."""
        little = self.bound is not None and self.bound < limit
        return self.sentences >= MINIMUM and little and self.ruined_bound < _RUINED

    def __str__(self) -> str:
        against = "" if self.chrf is None else f"; chrF {self.chrf:.2f}, in float32 {self.chrf_float32:.2f}"
        lost = "a loss that cannot be measured"
        if self.loss is not None:
            lost = f"a loss of {self.loss:.4f} nats a token, at most {self.bound:.4f}"
        return (
            f"{self.compute_type} compared with float32 on {self.sentences} sentences: {lost}; "
            f"{max(0.0, self.ruined):.1%} of the sentences ruined, at most {self.ruined_bound:.1%}; "
            f"{self.identical:.1%} the same{against}"
        )


def translated_both_ways(
    model: TranslationModel, options: DecodingOptions, placement: Placement, sentences: Sequence[str]
) -> pa.Table:
    """Translate a sample with CTranslate2 in the type of ``options`` and in float32; gives the columns of
    :data:`BOTH_WAYS`. Raises IncompleteError: no sentence of it could be translated."""

    def opened(compute_type: str) -> ctranslate2.CTranslate2Translator:
        chosen = options.with_changes(compute_type=compute_type)
        translator = open_translator(ctranslate2.NAME, model, chosen, placement)
        assert isinstance(translator, ctranslate2.CTranslate2Translator)  # it can also score
        return translator

    quantised = _best(opened(options.compute_type), sentences)
    # The first model is gone before the second is loaded: a device may have room for one.
    translator = opened(FULL)
    full = _best(translator, sentences)
    other = [place for place in range(len(sentences)) if full[place].text != quantised[place].text]
    losses = [0.0] * len(sentences)
    sources = [sentences[place] for place in other]
    own = translator.score(sources, [full[place].text for place in other])
    theirs = translator.score(sources, [quantised[place].text for place in other])
    for place, best, found in zip(other, own, theirs, strict=True):
        losses[place] = best - found
    ruined = [
        _is_ruined(found, loss) - _is_ruined(best, -loss)
        for found, best, loss in zip(quantised, full, losses, strict=True)
    ]
    texts = [[best.text for best in found] for found in (full, quantised)]
    numbers = pa.array(losses, pa.float64(), from_pandas=True)  # no number is null
    return pa.table([*texts, numbers, ruined], schema=BOTH_WAYS)


def _best(translator: ctranslate2.CTranslate2Translator, sentences: Sequence[str]) -> list[Hypothesis]:
    results = list(translator.translate(sentences))
    failures = [result.failed for result in results if result.failed]
    if len(failures) == len(results):
        raise IncompleteError(f"no sentence of the sample could be translated: {failures[0]}")
    return [result.hypotheses[0] if result.hypotheses else Hypothesis("", 0.0, 0) for result in results]


def _is_ruined(hypothesis: Hypothesis, loss: float) -> bool:
    return hypothesis.empty or hypothesis.runaway or loss > _HOPELESS


def measure_loss(
    found: pa.Table, compute_type: str, references: Sequence[str] | None = None
) -> QuantisationLoss:
    """The loss on a sample of one sentence or more, translated :data:`BOTH_WAYS`, with the upper bounds of
    one-sided 95 % intervals."""
    full, quantised, ruined = (found[name].to_pylist() for name in ("float32", "quantised", "ruined"))
    losses = found["loss"].to_numpy()
    losses = losses[np.isfinite(losses)]
    loss = bound = None
    if len(losses) > 1:
        error = float(losses.std(ddof=1)) / math.sqrt(len(losses))
        loss = round(float(losses.mean()), 6)
        bound = round(float(losses.mean()) + _SIGMAS * error, 6)
    count = found.num_rows
    worse, better = (sum(sign == one for one in ruined) for sign in (1, -1))
    # Paired shares with half an observation more in each cell (Agresti and Min 2005): none seen is not none.
    difference = (worse - better) / (count + 2)
    spread = math.sqrt(worse + better + 1 - (worse - better) ** 2 / (count + 2)) / (count + 2)
    same = sum(map(str.__eq__, full, quantised))
    return QuantisationLoss(
        compute_type=compute_type,
        sentences=count,
        identical=round(same / count, 4),
        loss=loss,
        bound=bound,
        ruined=round((worse - better) / count, 4),
        ruined_bound=round(difference + _SIGMAS * spread, 6),
        chrf_float32=None if references is None else round(_chrf(full, references), 4),
        chrf=None if references is None else round(_chrf(quantised, references), 4),
    )


def _chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    from sacrebleu.metrics.chrf import CHRF

    return float(CHRF().corpus_score(list(hypotheses), [list(references)]).score)


def sample_size(sentences: int, wanted: int = SENTENCES) -> int:
    """Sentences of a check that takes a tenth of the time of translating all; 0 if they would be too few."""
    size = min(wanted, sentences // SHARE)
    return size if size >= MINIMUM else 0


def decided(
    loss: QuantisationLoss | None,
    compute_type: str,
    check: Check,
    limit: float,
    *,
    model: Path | None,
    remedy: str,
) -> str:
    """The compute type to translate in: the one that was asked for only if it is shown to lose nothing.

    loss: on a sample; None where there is too little text for one. compute_type: the one that was asked for.
    check: ``fallback`` takes float32, ``error`` stops. limit: nats a token that may be lost.
    model: for the error.

    Raises InputError: the loss may be above the limit, and ``check`` is ``error``.
    """
    if loss is not None and loss.within(limit):
        logger.info("%s; it is used (limit %g nats a token)", loss, limit)
        return compute_type
    if loss is None:
        reason = (
            f"there is too little text to check {compute_type} in a tenth of the time "
            f"({MINIMUM * SHARE:,} sentences are enough)"
        )
    else:
        reason = f"{loss}; not shown to lose less than {limit:g} nats a token and 1 % of the sentences"
    if check == "error":
        raise InputError(reason, model, remedy=remedy)
    logger.warning("%s: everything is translated in float32", reason)
    return FULL
