"""What a translation engine is: options in, sentences in, hypotheses out, in order."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from paraforge.files import hash_json

# A loop is a block of at most _LONGEST_BLOCK words or tokens, or _LONGEST_LETTERS letters, _REPEATS times or
# more. tests/translation/test_runaway.py measures how many human sentences have one.
_LONGEST_BLOCK = 8
_LONGEST_LETTERS = 12
_REPEATS = 3
_LEAST_WORDS = 5
_LEAST_TOKENS = 24
_LEAST_LETTERS = 8
_WORD = re.compile(r"\w+")
_LETTER_LOOP = re.compile(rf"([^\W\d_]{{1,{_LONGEST_LETTERS}}}?)\1{{{_REPEATS - 1},}}")


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
        runaway: it repeats itself as no text does; see :func:`is_runaway`.
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


def is_runaway(text: str, tokens: Sequence[object], ended: bool = True) -> bool:
    """Whether a hypothesis repeats itself as no text does, whatever engine made it.

    It does if the same letters come three times or more within a word, over eight letters or more
    ("necktitititit"), the same words over five words or more, or the same tokens over 24 tokens or more;
    blocks without a letter or digit do not count, for a line of dashes is no fault. At the length cap it is
    enough that the second half is a block of at most eight tokens over and over.

    Args:
        text: detokenised hypothesis.
        tokens: target tokens without end of sentence.
        ended: whether the engine reached end of sentence by itself.
    """
    if not ended and _repeats_to_the_end(tokens):
        return True
    if any(match.end() - match.start() >= _LEAST_LETTERS for match in _LETTER_LOOP.finditer(text)):
        return True
    return _has_loop(_WORD.findall(text), _LEAST_WORDS) or _has_loop(tokens, _LEAST_TOKENS)


def _repeats_to_the_end(tokens: Sequence[object]) -> bool:
    tail = list(tokens[len(tokens) // 2 :])
    longest = min(_LONGEST_BLOCK, len(tail) // 2)
    return any(tail[period:] == tail[:-period] for period in range(1, longest + 1))


def _has_loop(items: Sequence[object], least: int) -> bool:
    """Whether a block of items comes three times or more in a row, and over ``least`` items or more."""
    for period in range(1, min(_LONGEST_BLOCK, len(items) // _REPEATS) + 1):
        wanted = max(_REPEATS * period, least) - period
        run = 0
        for place in range(period, len(items)):
            run = run + 1 if items[place] == items[place - period] else 0
            if run >= wanted:
                block = items[place - period : place]
                if any(letter.isalnum() for item in block for letter in str(item)):
                    return True
    return False
