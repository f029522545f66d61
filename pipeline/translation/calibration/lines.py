"""The check of quantised translation for sentences without references: by the model's own probabilities."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import numpy as np

from paraforge.decoding.engines import ctranslate2
from paraforge.decoding.translator import DecodingOptions, Placement
from paraforge.errors import InputError
from paraforge.models.model import open_model
from paraforge.translation.calibration.hypotheses import FULL, QUANTISED, BothWays, translated_both_ways
from paraforge.translation.text_file import PIPE, read_sentences

logger = logging.getLogger(__name__)

Check = Literal["fallback", "error", "skip"]

SENTENCES = 500
# Nats a token. Measured (docs/results.md): a smaller beam that costs 0.5 chrF costs 0.03 of them.
LIMIT = 0.02
# A loss that could be chance is none: so many standard errors.
_CHANCE = 2.0
_SILENT = 0.01
_SEED = 1


@dataclass(frozen=True)
class ProbabilityLoss:
    """By how much the float32 model finds quantised hypotheses less probable than its own.

    Attributes:
        compute_type: of the quantised model.
        sentences: in the sample.
        identical: share of them (0-1) whose best hypothesis is the same.
        silent: share of them (0-1) on which float32 alone says anything.
        loss: nats a token, on average over the sentences on which both do.
        error: standard error of ``loss``.
    """

    compute_type: str
    sentences: int
    identical: float
    silent: float
    loss: float
    error: float

    @property
    def exceeds_limit(self) -> bool:
        """Whether more than :data:`LIMIT` is lost, and more than chance, or one sentence in a hundred."""
        return self.silent > _SILENT or (self.loss > LIMIT and self.loss > _CHANCE * self.error)

    def __str__(self) -> str:
        silent = f"{self.silent:.1%} have no translation, " if self.silent else ""
        return (
            f"{self.compute_type} against float32 on {self.sentences} sentences: float32 finds its own "
            f"translations {self.loss:.4f} ± {self.error:.4f} nats a token more probable; {silent}"
            f"{self.identical:.1%} are the same"
        )


def probability_loss(found: BothWays, compute_type: str) -> ProbabilityLoss:
    """The loss on a sample of one sentence or more."""
    losses = np.array(found.losses)
    losses = losses[np.isfinite(losses)]
    pairs = list(zip(found.full, found.quantised, strict=True))
    return ProbabilityLoss(
        compute_type=compute_type,
        sentences=len(pairs),
        identical=sum(full == quantised for full, quantised in pairs) / len(pairs),
        silent=sum(bool(full) and not quantised for full, quantised in pairs) / len(pairs),
        loss=float(losses.mean()) if len(losses) else 0.0,
        error=float(losses.std(ddof=1)) / math.sqrt(len(losses)) if len(losses) > 1 else 0.0,
    )


def checked(
    model: Path,
    options: DecodingOptions,
    placement: Placement,
    path: Path,
    sentences: Iterator[str],
    check: Check = "fallback",
) -> tuple[DecodingOptions, Iterator[str]]:
    """What to translate with, the type that was asked for or float32, and what to translate.

    Args:
        model: directory of the model.
        options: of the engine ``ctranslate2``; nothing happens if their compute type is not quantised.
        placement: where the sample is translated: where everything will be.
        path: of the input, ``-`` for standard input.
        sentences: what :func:`~paraforge.translation.text_file.read_sentences` gave for it.
        check: ``fallback`` takes float32 where too much is lost, ``error`` stops, ``skip`` does not look.

    Raises:
        InputError: more is lost than allowed, and ``check`` is ``error``; a line of the file cannot be read.
        IncompleteError: the sample could not be translated.
    """
    options = ctranslate2.resolve(options, placement)
    if options.compute_type not in QUANTISED:
        return options, sentences
    sample: list[str] = []
    if check != "skip":
        sample, sentences = sampled(path, sentences, SENTENCES)
        sample = [sentence for sentence in sample if sentence.strip()]
    if not sample:
        logger.warning("%s is not compared with float32: nobody knows what it loses", options.compute_type)
        return options, sentences
    logger.info("translating %d sentences in %s and in float32", len(sample), options.compute_type)
    found = translated_both_ways(open_model(model, ctranslate2.NAME), options, placement, sample)
    loss = probability_loss(found, options.compute_type)
    if not loss.exceeds_limit:
        logger.info("%s; it is kept (limit %.2f)", loss, LIMIT)
        return options, sentences
    if check == "error":
        raise InputError(
            f"{loss}; that is more than {LIMIT:.2f}",
            model,
            remedy="Say --compute-type float32, or --check fallback or skip.",
        )
    logger.warning("%s: more than %.2f, so everything is translated in float32", loss, LIMIT)
    return dataclasses.replace(options, compute_type=FULL), sentences


def sampled(path: Path, sentences: Iterator[str], wanted: int) -> tuple[list[str], Iterator[str]]:
    """Some sentences of an input, and the whole input.

    Of a file they are drawn at random from all of it, always the same ones, by reading it twice; of standard
    input, which cannot be read twice, they are the first.

    Args:
        path: of the input, ``-`` for standard input.
        sentences: what :func:`~paraforge.translation.text_file.read_sentences` gave for it.
        wanted: sentences; all of them where there are fewer.

    Raises:
        InputError: a line of the file cannot be read.
    """
    if path == PIPE:
        first = list(islice(sentences, wanted))
        return first, chain(first, sentences)
    return reservoir(sentences, wanted), read_sentences(path)


def reservoir(items: Iterable[str], wanted: int) -> list[str]:
    """A uniform sample without replacement of a stream, seeded, in bounded memory (Vitter's algorithm R)."""
    dice = np.random.default_rng(_SEED)
    kept: list[str] = []
    for number, item in enumerate(items):
        if number < wanted:
            kept.append(item)
        elif (place := int(dice.integers(number + 1))) < wanted:
            kept[place] = item
    return kept
