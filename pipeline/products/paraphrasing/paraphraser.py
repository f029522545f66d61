"""Uses a trained paraphraser: turns requests into tags before a source, and searches for paraphrases with an
engine.

Each tag is a separate piece of the vocabulary: ``⟦overlap1⟧`` is the lowest third of lexical overlap, and
the template ``(S (NP) (VP) (.))`` is ``⟦(S⟧⟦NP⟧⟦VP⟧⟦.⟧``.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from paraforge.base.errors import ConfigurationError, InputError, check_format, describing
from paraforge.base.files import read_json
from paraforge.base.parsing.brackets import template_of
from paraforge.base.section import Section
from paraforge.base.shards.resources import available_cores
from paraforge.translation.decoding.translator import DecodingOptions, Placement, Translator
from paraforge.translation.engines import open_translator
from paraforge.translation.models.model import open_model

CONTROLS_FILE = "controls.json"
FORMAT = 1
# The least and the greatest possible value of each control, in the order of the tags.
RANGES = {"similarity": (-1.0, 1.0), "overlap": (0.0, 1.0), "length": (0.0, float("inf"))}
_OPEN, _CLOSE = "⟦", "⟧"
_LABEL = re.compile(r"\(?[^\s()]+")
_TAG = re.compile(f"{_OPEN}[^{_CLOSE}]*{_CLOSE}")
_TAGGED = re.compile(f"^({_TAG.pattern})+ ")
_PLAIN = str.maketrans({_OPEN: "[", _CLOSE: "]"})
_NEAREST = 5
MAXIMUM_TOKENS = 256


@dataclass(frozen=True)
class Controls:
    """What can be requested from a paraphraser.

    edges: of ``similarity`` (paraphrase score), ``overlap`` (of unigrams) and ``length`` (tokens of the
        paraphrase / tokens of the source): the values between the buckets, ascending. A missing name cannot
        be requested.
    templates: learned templates, with the number of training outputs of each.
    parser: name of the parser that made them.
    """

    edges: dict[str, list[float]] = field(default_factory=dict)
    templates: dict[str, int] = field(default_factory=dict)
    parser: str | None = None

    def symbols(self) -> list[str]:
        """Return every tag."""
        buckets = [
            _bucket_tag(name, bucket)
            for name, edges in self.edges.items()
            for bucket in range(len(edges) + 1)
        ]
        labels = {tag for template in self.templates for tag in _TAG.findall(template_tags(template))}
        return [*buckets, *sorted(labels)]

    def buckets(self, name: str, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return each value's bucket, from 0; -1 for NaN.

        name: one of :data:`RANGES` that has edges. values: n.
        """
        numbers = np.searchsorted(self.edges[name], values, side="right")
        return np.where(np.isnan(values), -1, numbers)

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names of a control's buckets, the lowest first."""
        return ("low", "medium", "high") if len(self.edges[name]) == 2 else ("low", "high")

    def bucket(self, name: str, asked: str) -> int:
        """Return the bucket that a user names, either by its name or by a value in it (see :data:`RANGES`).

        Raises ConfigurationError if there is no such bucket, or the model does not have this control.
        """
        if name not in self.edges:
            raise ConfigurationError([f"{name}: this model was trained without this control"])
        names, (least, most) = self.names(name), RANGES[name]
        if asked in names:
            return names.index(asked)
        with suppress(ValueError):
            value = float(asked)
            if least <= value <= most and math.isfinite(value):
                return int(self.buckets(name, np.array([value]))[0])
        values = f"from {least} to {most}" if math.isfinite(most) else f"from {least}"
        raise ConfigurationError([f"{name} {asked!r}: use {', '.join(names)}, or a value {values}"])

    def known_template(self, text: str) -> str:
        """Return a template as :func:`~paraforge.base.parsing.brackets.template_of` writes it.

        text: brackets of any depth, with or without words.

        Raises ConfigurationError if its brackets are not a tree's, or the model has not learned it.
        """
        try:
            template = template_of(text)
        except ValueError as error:
            raise ConfigurationError([f"the template {text!r} does not parse: {error}"]) from error
        if template in self.templates:
            return template
        if not self.templates:
            raise ConfigurationError(["this model was trained without templates"])
        nearest = ", ".join(difflib.get_close_matches(template, self.templates, _NEAREST, cutoff=0))
        raise ConfigurationError([f"the model has not learned the template {template}. Nearest: {nearest}"])

    def prefix(self, requested: Mapping[str, int], template: str | None = None) -> str:
        """Return the tags for named buckets and for a template, which go before the text."""
        tags = [_bucket_tag(name, requested[name]) for name in RANGES if name in requested]
        return "".join([*tags, template_tags(template) if template else ""])

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``controls.json``."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def read(cls, directory: Path) -> Controls:
        """Read ``controls.json`` of a model. Raises InputError if it is missing (so this is not a
        paraphraser), damaged, or of a newer version."""
        path = directory / CONTROLS_FILE
        if not path.is_file():
            raise InputError(
                f"not a paraphraser: there is no {CONTROLS_FILE} in it"
                if directory.is_dir()
                else "no such model",
                directory,
                remedy="Use the model that the stage paraphraser made, e.g. models/paraphraser.",
            )
        content = read_json(path)
        with describing(path):
            check_format(content["format"], FORMAT, path)
            edges = {name: [float(edge) for edge in content["edges"][name]] for name in content["edges"]}
            templates = {str(name): int(count) for name, count in content["templates"].items()}
            return cls(edges, templates, content["parser"])


def plain(text: str) -> str:
    """Return text without the brackets of tags, so that a sentence cannot contain tags."""
    return text.translate(_PLAIN)


def add_tags(prefix: str, text: str) -> str:
    """Return a source as the model reads it; a blank one stays blank."""
    return f"{prefix} {plain(text)}" if prefix and text.strip() else plain(text)


def remove_tags(source: str) -> str:
    """Return the text of a source made by :func:`add_tags`."""
    return _TAGGED.sub("", source)


def _bucket_tag(name: str, bucket: int) -> str:
    return f"{_OPEN}{name}{bucket + 1}{_CLOSE}"


def template_tags(template: str) -> str:
    """Return a template as tags: its root with a bracket, and the labels below it."""
    root, *labels = _LABEL.findall(template)
    return "".join(f"{_OPEN}{tag}{_CLOSE}" for tag in (root, *(label[1:] for label in labels)))


def is_paraphraser(path: Path) -> bool:
    """Return whether a directory has a paraphraser."""
    return (path / CONTROLS_FILE).is_file()


class Wishes(Section):
    """What a paraphrase should be like, how many there are, and how wide the beam is."""

    similarity: str | float | None = Field(None, description="low, medium, high, or a value")
    overlap: str | float | None = Field(
        None, description="share of words on both sides: low, medium, high, or a value"
    )
    length: str | float | None = Field(
        None, description="length of the paraphrase divided by that of the source, in tokens"
    )
    template: str | None = Field(
        None, description="top two levels of the paraphrase's parse, e.g. (S (NP) (VP) (.))"
    )
    nbest: int = Field(1, ge=1, le=64, description="number of paraphrases for each text")
    beam: int = Field(8, ge=1, le=128, description="beam width, at least nbest")


class Paraphraser:
    """A model of the stage ``paraphraser``.

        model = paraforge.load("models/paraphraser")
        model.paraphrase(["A dog runs."], overlap="low", nbest=3)

    controls: what can be requested.
    """

    def __init__(self, path: Path, device: str = "auto", threads: int = 0) -> None:
        """Open a paraphraser; the engine is loaded on first use.

        path: its directory. device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. threads: 0 is one per core.
        Raises InputError if this is not a paraphraser, or if it is damaged.
        """
        self.controls = Controls.read(path)
        self._path = path
        self._model = open_model(path)
        self._placement = Placement(device, threads or available_cores())
        self._opened: tuple[DecodingOptions, Translator] | None = None

    def sources(self, texts: Iterable[str], wishes: Wishes) -> Iterator[str]:
        """Return each text as the model reads it, with the tags for the request.

        Raises ConfigurationError, before reading any text, if the model does not support the request.
        """
        wishes_of = {name: getattr(wishes, name) for name in RANGES}
        requested = {
            name: self.controls.bucket(name, str(text))
            for name, text in wishes_of.items()
            if text is not None
        }
        template = None if wishes.template is None else self.controls.known_template(wishes.template)
        prefix = self.controls.prefix(requested, template)
        return (add_tags(prefix, text) for text in texts)

    def translator(self, wishes: Wishes) -> Translator:
        """Return the engine that searches; sources are :func:`add_tags` texts. Equal wishes reuse the loaded
        engine."""
        # LSTMs run only in fairseq.
        engine = "ctranslate2" if "ctranslate2" in self._model.folders else "fairseq"
        options = DecodingOptions(
            beam=max(wishes.beam, wishes.nbest), nbest=wishes.nbest, maximum_target_tokens=MAXIMUM_TOKENS
        )
        if self._opened is None or self._opened[0] != options:
            self._opened = None  # frees the previous one
            self._opened = (options, open_translator(engine, self._model, options, self._placement))
        return self._opened[1]

    def paraphrase(self, texts: Iterable[str], **wishes: Any) -> list[list[str]]:
        """Return the paraphrases of each text, the best first; none if it could not be paraphrased.

        wishes: their properties, number and beam, see :class:`Wishes`.

        Raises ConfigurationError if a wish is not possible.
        """
        sentences = list(texts)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in sentences):
            raise TypeError("texts must be a list of strings")
        try:
            requested = Wishes(**wishes)
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
            ]
            raise ConfigurationError(problems) from error
        sources = self.sources(sentences, requested)
        results = self.translator(requested).translate(sources)
        return [[hypothesis.text for hypothesis in result.hypotheses] for result in results]
