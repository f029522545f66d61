"""Best hypotheses of a sample in a quantised type and in float32, and what float32 thinks of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from paraforge.decoding.engines import ctranslate2
from paraforge.decoding.positions import limited_options
from paraforge.decoding.translator import DecodingOptions, Placement
from paraforge.errors import IncompleteError
from paraforge.models.model import TranslationModel

FULL = "float32"
QUANTISED = frozenset({"int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16"})


@dataclass(frozen=True)
class BothWays:
    """Of each sentence of a sample the best hypothesis in both types; empty where there is none.

    Attributes:
        full, quantised: the hypotheses.
        losses: mean log-probability of a token of ``full`` minus that of ``quantised``, both by the model in
            float32, natural logarithm; 0 where they are the same, NaN where one is empty.
    """

    full: list[str]
    quantised: list[str]
    losses: list[float]


def translated_both_ways(
    model: TranslationModel, options: DecodingOptions, placement: Placement, sentences: Sequence[str]
) -> BothWays:
    """Translate a sample with CTranslate2 in the type of ``options`` and in float32.

    Raises:
        IncompleteError: no sentence of it could be translated.
    """

    def opened(compute_type: str) -> ctranslate2.CTranslate2Translator:
        chosen = dataclasses.replace(options, compute_type=compute_type)
        chosen = limited_options(ctranslate2.resolve(chosen, placement), model)
        return ctranslate2.open_engine(model, chosen, placement, {})

    quantised = _best(opened(options.compute_type), sentences)
    # The first model is gone before the second is loaded: a device may have room for one.
    translator = opened(FULL)
    full = _best(translator, sentences)
    other = [place for place in range(len(sentences)) if full[place] != quantised[place]]
    losses = [0.0] * len(sentences)
    sources = [sentences[place] for place in other]
    own = translator.score(sources, [full[place] for place in other])
    theirs = translator.score(sources, [quantised[place] for place in other])
    for place, best, found in zip(other, own, theirs, strict=True):
        losses[place] = best - found
    return BothWays(full, quantised, losses)


def _best(translator: ctranslate2.CTranslate2Translator, sentences: Sequence[str]) -> list[str]:
    """Text of each sentence's best hypothesis; empty where there is none."""
    results = list(translator.translate(sentences))
    failures = [result.failed for result in results if result.failed]
    if len(failures) == len(results):
        raise IncompleteError(f"no sentence of the sample could be translated: {failures[0]}")
    return [result.hypotheses[0].text if result.hypotheses else "" for result in results]
