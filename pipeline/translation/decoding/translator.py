"""The protocol of translation engines, which turn sentences into hypotheses, in order, with faults marked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import Field, ValidationError, model_validator

from paraforge.base.errors import InputError
from paraforge.base.section import Section
from paraforge.translation.models.model import TranslationModel

# A loop is a block of at most _LONGEST_BLOCK words or tokens, or _LONGEST_LETTERS letters, repeated _REPEATS
# times or more. tests/translation/decoding/test_translator.py measures how many human sentences have one.
_LONGEST_BLOCK = 8
_LONGEST_LETTERS = 12
_REPEATS = 3
_LEAST_WORDS = 5
_LEAST_TOKENS = 24
_LEAST_LETTERS = 8
_WORD = re.compile(r"\w+")
_LETTER_LOOP = re.compile(rf"([^\W\d_]{{1,{_LONGEST_LETTERS}}}?)\1{{{_REPEATS - 1},}}")


def is_runaway(text: str, tokens: Sequence[object], ended: bool = True) -> bool:
    """Return whether a hypothesis repeats itself in a way that real text does not.

    That is the case if a block is repeated three times or more: letters within a word, over at least eight
        letters ("necktitititit"); words, over at least five words; or tokens, over at least 24 tokens. Blocks
        without a letter or digit do not count, because a line of dashes is not a fault. At the length cap, it
        is enough that the second half repeats a block of at most eight tokens.

    text: detokenized hypothesis. tokens: target tokens without end-of-sentence.
    ended: whether the engine produced end-of-sentence itself.
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
    """Return whether a block of items is repeated three times or more in a row, over at least ``least``
    items."""
    for period in range(1, min(_LONGEST_BLOCK, len(items) // _REPEATS) + 1):
        needed = max(_REPEATS * period, least) - period
        run = 0
        for place in range(period, len(items)):
            run = run + 1 if items[place] == items[place - period] else 0
            if run >= needed:
                block = items[place - period : place]
                if any(letter.isalnum() for item in block for letter in str(item)):
                    return True
    return False


ComputeType = Literal[
    "auto",
    "float32",
    "float16",
    "bfloat16",
    "int16",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
]


class DecodingOptions(Section):
    """Everything that a translation depends on besides model and sentence."""

    beam: int = Field(12, ge=1, le=128, description="beam width (ParaNMT section 3: 12)")
    nbest: int = Field(
        1, ge=1, le=127, description="hypotheses to keep for each sentence, at most beam; each is a row"
    )
    length_penalty: float = Field(
        1.0, ge=0, le=5, description="score = log-probability / length ** length_penalty"
    )
    compute_type: ComputeType = Field(
        "float32", description="number format of the weights; auto: the fastest on the device"
    )
    maximum_source_tokens: int = Field(
        1024,
        ge=2,
        description="longest source in tokens, with end of sentence and language tags; a longer one is cut "
        "and marked",
    )
    maximum_target_tokens: int = Field(
        256,
        ge=2,
        description="longest hypothesis in tokens, with end of sentence; a longer one is cut and marked",
    )

    shortlist: Literal["auto"] | bool = Field(
        "auto",
        description="search only the target pieces that the model's shortlist has for a sentence (engine "
        "ctranslate2 on CPUs); auto: if the model has a shortlist and int8 weights",
    )

    @model_validator(mode="after")
    def _nbest_fits(self) -> DecodingOptions:
        if self.nbest > self.beam:
            raise ValueError(f"nbest is {self.nbest}, but the beam is only {self.beam}")
        return self

    def with_changes(self, **changes: Any) -> DecodingOptions:
        """Return the options with some changes."""
        return DecodingOptions.model_validate({**self.model_dump(), **changes})

    def on_device(self, device: str) -> DecodingOptions:
        """Return the options; ``shortlist: auto`` is turned off on GPUs and for weights other than int8.
        A shortlist is slower there, because sentences are then searched one by one."""
        slower = device != "cpu" or not self.compute_type.startswith("int8")
        return self.with_changes(shortlist=False) if self.shortlist == "auto" and slower else self

    def recorded(self) -> dict[str, Any]:
        """Return the options for keys and manifests; ``shortlist`` is left out if it is off."""
        return self.model_dump(exclude=None if self.shortlist else {"shortlist"})


class EngineSettings(Section):
    """Settings of an engine, in a section with its name."""

    def result_settings(self) -> dict[str, Any]:
        """Return what a translation depends on, in an engine without a model."""
        return self.model_dump()

    def check(self, options: DecodingOptions) -> None:
        """Check the settings with the other options. Raises ValueError if they are incompatible."""


Settings = TypeVar("Settings", bound=EngineSettings)


def settings_of(
    kind: type[Settings], engine: str, values: dict[str, Any], options: DecodingOptions | None = None
) -> Settings:
    """Return settings from names and values, checked with the other options, if given. Raises InputError if a
    setting is unknown or a value invalid."""
    unknown = sorted(set(values) - set(kind.model_fields))
    if unknown:
        raise InputError(
            f"the engine '{engine}' has no setting {', '.join(unknown)}",
            remedy=f"Use {', '.join(sorted(kind.model_fields))}." if kind.model_fields else None,
        )
    try:
        settings = kind.model_validate(values)
        if options is not None:
            settings.check(options)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc']))} is {problem['input']!r}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise InputError(f"engine {engine}: {'; '.join(problems)}") from error
    except ValueError as error:
        raise InputError(f"engine {engine}: {error}") from error
    return settings


@dataclass(frozen=True)
class Placement:
    """Where an engine runs and what it uses; hypotheses depend on it only by rounding.

    device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. threads: CPU threads.
    batch_tokens: source tokens per batch, including padding; 0 lets the engine choose.
    graphs: whether the engine torch records its steps on a GPU as CUDA graphs; off only in measurements.
    """

    device: str = "auto"
    threads: int = 1
    batch_tokens: int = 0
    graphs: bool = True

    def kind_and_number(self, sees_gpu: Callable[[], object]) -> tuple[str, int]:
        """Return ``cpu`` or ``cuda`` and the device's number; ``auto`` is a GPU if the engine sees one.
        Raises InputError if no device has this name."""
        name, _, number = self.device.partition(":")
        if name == "auto":
            return ("cuda" if sees_gpu() else "cpu"), 0
        if name not in ("cpu", "cuda") or (number and not number.isdecimal()):
            raise InputError(f"there is no device '{self.device}'", remedy="Use auto, cpu, cuda or cuda:0.")
        return name, int(number or 0)


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    text: detokenized.
    score: mean natural log-probability per target token, with end-of-sentence in sum and length; NaN if it is
        not finite or nothing was decoded.
    tokens: target tokens, including end-of-sentence.
    output_truncated: it ended at the cap, not at end-of-sentence.
    non_finite: the engine's score was NaN or infinite.
    runaway: it repeats itself in a way that real text does not; see :func:`is_runaway`.
    """

    text: str
    score: float
    tokens: int
    output_truncated: bool = False
    non_finite: bool = False
    runaway: bool = False

    @property
    def empty(self) -> bool:
        """Whether the text is empty."""
        return not self.text.strip()


@dataclass(frozen=True)
class Hypotheses:
    """The result for one sentence: hypotheses by descending score, or why there are none."""

    hypotheses: tuple[Hypothesis, ...]
    source_truncated: bool = False
    failed: str | None = None


@dataclass
class Usage:
    """Counts from a server; all 0 if it does not count tokens."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Translator(Protocol):
    """An engine with a model, ready to translate."""

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Translate a stream of sentences; yields one result per sentence, in order.

        A sentence that the engine cannot translate is a result with ``failed``, not an exception.

        Raises EngineError if the engine fails on every input.
        """


class Engine:
    """The base of translation engines; an instance is a :class:`Translator`.

    LIBRARIES: distributions whose version affects the translations; recorded with them.
    SETTINGS: the class of its own settings.
    MODEL_FREE: whether it needs no model.
    REMOTE: whether it computes nothing on this machine, so that one process requests all sentences.
    FORM: name of the engine whose form of a model it reads, if not its own.
    SHORTLISTS: whether it can search with a model's shortlist.
    """

    LIBRARIES: ClassVar[Sequence[str]] = ()
    SETTINGS: ClassVar[type[EngineSettings]] = EngineSettings
    MODEL_FREE: ClassVar[bool] = False
    REMOTE: ClassVar[bool] = False
    FORM: ClassVar[str | None] = None
    SHORTLISTS: ClassVar[bool] = False

    def __init__(
        self, model: TranslationModel | None, options: DecodingOptions, placement: Placement, settings: Any
    ) -> None:
        """Load the model with resolved ``options`` and the engine's own ``settings``."""

    @classmethod
    def resolve(cls, options: DecodingOptions, placement: Placement) -> DecodingOptions:
        """Return the options with every ``auto`` resolved, so that they determine the result. Raises
        InputError if the engine or the device does not support them."""
        return options.with_changes(compute_type="float32")

    @classmethod
    def check(cls, model: TranslationModel) -> None:
        """Raise InputError for a model that the engine cannot use, before any work."""

    @classmethod
    def remembered_as(cls, settings: dict[str, Any]) -> dict[str, Any] | None:
        """Return what names its set in the memory instead of model and options; None: nothing does."""
        return None

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Translate a stream; see :class:`Translator`."""
        raise NotImplementedError


def make_hypothesis(text: str, score: float, tokens: Sequence[object], ended: bool) -> Hypothesis:
    """Build a hypothesis with its flags.

    text: detokenized hypothesis. score: the engine's score, finite or not.
    tokens: target tokens without end-of-sentence. ended: whether the engine produced end-of-sentence itself.
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
