"""What a translation engine is: options in, sentences in, hypotheses out, in order."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from paraforge.decoding.runaway import is_runaway
from paraforge.files import hash_json


@dataclass(frozen=True)
class DecodingOptions:
    """What a translation depends on beside model and sentence.

    Attributes:
        beam: width of the beam (PN 3: 12).
        nbest: hypotheses given for a sentence, the best first; at most ``beam``.
        length_penalty: hypotheses are ranked, and scored, by log-probability / length ** length_penalty.
        maximum_source_tokens: a longer source is cut; end-of-sentence and language tags included.
        maximum_target_tokens: a longer hypothesis is cut; end-of-sentence included.
        compute_type: arithmetic of the engine: ``float32``, ``int8``, ...; ``auto`` lets the engine choose
            what is fastest on the device.
    """

    beam: int = 12
    nbest: int = 1
    length_penalty: float = 1.0
    maximum_source_tokens: int = 1024
    maximum_target_tokens: int = 256
    compute_type: str = "float32"

    def __post_init__(self) -> None:
        if not 1 <= self.nbest <= self.beam:
            raise ValueError(f"nbest is {self.nbest}: it has to be from 1 to beam, {self.beam}")
        if self.maximum_source_tokens < 2 or self.maximum_target_tokens < 2:
            raise ValueError("a maximum of tokens is below 2, a token and end-of-sentence")

    def description(self) -> dict[str, Any]:
        """The options as JSON values."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Placement:
    """Where and with how much an engine runs; no hypothesis depends on it but by rounding.

    Attributes:
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        threads: CPU threads.
        batch_tokens: source tokens of a batch, padding included; 0 lets the engine choose.
        graphs: whether the engine torch records its steps on a GPU as CUDA graphs.
    """

    device: str = "auto"
    threads: int = 1
    batch_tokens: int = 0
    graphs: bool = False


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: detokenised.
        score: mean natural log-probability per target token, end-of-sentence in sum and length;
            NaN if it is not finite or nothing was decoded.
        tokens: target tokens, end-of-sentence included.
        output_truncated: it ended at the cap, not at end-of-sentence.
        non_finite: the engine's score was NaN or infinite.
        runaway: it repeats itself as no text does; see :mod:`paraforge.decoding.runaway`.
    """

    text: str
    score: float
    tokens: int
    output_truncated: bool = False
    non_finite: bool = False
    runaway: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is no text."""
        return not self.text.strip()


@dataclass(frozen=True)
class Hypotheses:
    """What an engine gave for one sentence: hypotheses by falling score, or why there are none."""

    hypotheses: tuple[Hypothesis, ...]
    source_truncated: bool = False
    failed: str | None = None


class Translator(Protocol):
    """An engine with a model, ready to translate."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of weights, vocabulary, engine and decoding options."""

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Translate a stream of sentences; one result a sentence, in their order.

        A sentence that the engine cannot translate is a result with ``failed``, not an exception.

        Raises:
            Interrupted: SIGTERM or Ctrl-C arrived; the batch in hand is finished.
            EngineError: the engine fails on whatever it is given.
        """


def fingerprint_of(engine: str, weights: str, options: DecodingOptions) -> str:
    """Fingerprint of a translator: engine's name, fingerprint of weights and vocabulary, options."""
    return hash_json({"engine": engine, "weights": weights, "options": options.description()})


def make_hypothesis(text: str, score: float, tokens: Sequence[object], ended: bool) -> Hypothesis:
    """A hypothesis with its flags.

    Args:
        text: detokenised hypothesis.
        score: as the engine gave it, finite or not.
        tokens: target tokens without end-of-sentence.
        ended: whether the engine came to end-of-sentence by itself.
    """
    finite = math.isfinite(score)
    return Hypothesis(
        text=text,
        score=score if finite else math.nan,
        tokens=len(tokens) + ended,
        output_truncated=not ended,
        non_finite=not finite,
        runaway=is_runaway(text, tokens, ended),
    )
