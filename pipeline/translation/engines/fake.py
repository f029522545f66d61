"""An engine without a model: deterministic and fast, or slow, wrong or failing if its settings say so.

Tests, dry runs and cost plans run the whole pipeline with it.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pydantic import Field, field_validator

from paraforge.translation.decoding.batching import BatchEngine, Decoded, SourceTokens
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    EngineSettings,
    Hypothesis,
    Placement,
    make_hypothesis,
)
from paraforge.translation.models.model import TranslationModel

_BATCH_TOKENS = 4096
_WORD = re.compile(r"\w+|[^\w\s]")
# Frequent English words, so that the output has scores and overlaps like real text.
_ENGLISH = (
    "a about after all also an and another any are around as at be because before big black blue boy "
    "but by can child city come could day did dog each even find first for from game girl give go good "
    "great green group had has have he her here him his house how if in into is it its just know large "
    "last life like little long look made make man many may more most much must near new no not now of "
    "off old on one only open or other our out over people play red right run said same say see she "
    "should sit small so some stand such take than that the their them then there these they thing this "
    "three through time to two under up us use very walk want was water way we well went were what when "
    "where which while white who will with woman work would year you young"
)
_WORDS = _ENGLISH.split()


class InjectedFailure(RuntimeError):
    """Raised for a sentence on which the engine is set to fail."""


class Fake(EngineSettings):
    """Settings of the engine."""

    seed: int = Field(1, description="random seed; another seed gives other translations")
    fail_pattern: str | None = Field(None, description="regular expression; sentences that match it fail")
    defects: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of sentences that come out empty, non-finite, truncated or runaway",
    )
    sentences_per_second: float = Field(
        0.0, ge=0, description="sentences per second of a worker; 0: as fast as possible"
    )

    @field_validator("fail_pattern")
    @classmethod
    def _is_pattern(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return pattern

    def result_settings(self) -> dict[str, Any]:
        """Return what a translation depends on."""
        return self.model_dump(exclude={"sentences_per_second"})


class FakeTranslator(BatchEngine):
    """A translator whose result depends only on sentence, options and settings."""

    SETTINGS = Fake
    MODEL_FREE = True

    def __init__(
        self, model: TranslationModel | None, options: DecodingOptions, placement: Placement, settings: Fake
    ) -> None:
        self._options = options
        self._settings = settings
        self._fail = re.compile(settings.fail_pattern) if settings.fail_pattern else None
        self.batch_tokens = placement.batch_tokens or _BATCH_TOKENS

    def encode(self, sentences: list[str]) -> list[SourceTokens]:
        """Return words and punctuation marks, truncated at the maximum."""
        room = self._options.maximum_source_tokens - 1
        return [
            SourceTokens(sentence, words[:room], len(words) > room)
            for sentence, words in zip(sentences, map(_WORD.findall, sentences), strict=True)
        ]

    def submit(self, batch: list[SourceTokens]) -> Callable[[], Decoded]:
        """Return a function that translates the batch when it is called."""
        return lambda: self._decode(batch)

    def _decode(self, batch: list[SourceTokens]) -> Decoded:
        for source in batch:
            if self._fail is not None and self._fail.search(source.sentence):
                raise InjectedFailure(f"told to fail on {self._fail.pattern!r}")
        if self._settings.sentences_per_second:
            time.sleep(len(batch) / self._settings.sentences_per_second)
        return [self._hypotheses(source) for source in batch]

    def _hypotheses(self, source: SourceTokens) -> tuple[Hypothesis, ...]:
        dice = _Dice(f"{self._settings.seed}\0{source.sentence}")
        words = [_word(self._settings.seed, word) for word in source.tokens]
        best = -0.1 - 1.4 * dice.share()
        defect = dice.share()
        hypotheses = [
            self._hypothesis(_alter(words, dice) if rank else words, best - 0.05 * rank)
            for rank in range(self._options.nbest)
        ]
        if defect < self._settings.defects:
            kind = int(4 * defect / self._settings.defects)
            hypotheses[0] = self._defective(kind, words, best)
        return tuple(hypotheses)

    def _hypothesis(self, words: list[str], score: float) -> Hypothesis:
        room = self._options.maximum_target_tokens
        ended = len(words) < room
        return make_hypothesis(_join(words[:room]), score, words[:room], ended)

    def _defective(self, kind: int, words: list[str], score: float) -> Hypothesis:
        room = self._options.maximum_target_tokens
        if kind == 0:
            return make_hypothesis("", score, [], ended=True)
        if kind == 1:
            return make_hypothesis(_join(words), math.nan, words, ended=True)
        filled = (words * room)[:room] if kind == 2 else [words[0]] * room
        return make_hypothesis(_join(filled), score, filled, ended=False)


class _Dice:
    """Pseudo-random numbers that depend only on a text."""

    def __init__(self, text: str) -> None:
        self._digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=64).digest()
        self._place = 0

    def share(self) -> float:
        """Return a number from 0 to below 1."""
        if self._place + 4 > len(self._digest):
            self._digest = hashlib.blake2b(self._digest, digest_size=64).digest()
            self._place = 0
        self._place += 4
        return int.from_bytes(self._digest[self._place - 4 : self._place], "big") / 2**32


@lru_cache(maxsize=65_536)
def _word(seed: int, word: str) -> str:
    """Return the English word for a word; numbers and punctuation marks stay."""
    if not word[0].isalpha():
        return word
    digest = hashlib.blake2b(
        f"{seed}\0{word.lower()}".encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()
    english = _WORDS[int.from_bytes(digest, "big") % len(_WORDS)]
    return english.capitalize() if word[0].isupper() else english


def _alter(words: list[str], dice: _Dice) -> list[str]:
    """Exchange two neighboring words, or change one, as in the lower ranks of a beam."""
    altered = list(words)
    place = int(dice.share() * len(words))
    if len(words) > 1 and dice.share() < 0.5:
        other = (place + 1) % len(words)
        altered[place], altered[other] = altered[other], altered[place]
    else:
        altered[place] = _WORDS[int(dice.share() * len(_WORDS))]
    return altered


def _join(words: list[str]) -> str:
    return re.sub(r" (?=[.,;:!?)])", "", " ".join(words))
