"""Controls of a paraphrase: what can be requested, and the tags before a source that request it.

Each tag is a separate piece of the vocabulary: ``⟦overlap1⟧`` is the lowest third of lexical overlap, and
the template ``(S (NP) (VP) (.))`` is ``⟦(S⟧⟦NP⟧⟦VP⟧⟦.⟧``.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paraforge.base.errors import ConfigurationError, InputError, check_format, describing
from paraforge.base.files import read_json
from paraforge.base.parsing.brackets import template_of

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
        found = np.searchsorted(self.edges[name], values, side="right")
        return np.where(np.isnan(values), -1, found)

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

    def prefix(self, wanted: Mapping[str, int], template: str | None = None) -> str:
        """Return the tags for named buckets and for a template, which go before the text."""
        tags = [_bucket_tag(name, wanted[name]) for name in RANGES if name in wanted]
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


def tagged(prefix: str, text: str) -> str:
    """Return a source as the model reads it; a blank one stays blank."""
    return f"{prefix} {plain(text)}" if prefix and text.strip() else plain(text)


def untagged(source: str) -> str:
    """Return the text of a source made by :func:`tagged`."""
    return _TAGGED.sub("", source)


def bucket_edges(values: NDArray[np.float64]) -> list[float]:
    """Return the inner edges of three buckets with equally many values; fewer edges if values are equal.

    values: n, NaN for none.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return []
    # Each edge is one of the values, so that no bucket is empty.
    edges = np.unique(np.quantile(finite, np.arange(1, 3) / 3, method="higher"))
    # A value equal to an edge is above it, so an edge at the smallest value would have nothing below it.
    return [float(edge) for edge in edges[edges > finite.min()]]


def learnt_templates(counts: Mapping[str, int], minimum: int, most: int) -> dict[str, int]:
    """Return the most frequent templates with at least ``minimum`` outputs, by descending number."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {template: count for template, count in ordered[:most] if count >= minimum}


def _bucket_tag(name: str, bucket: int) -> str:
    return f"{_OPEN}{name}{bucket + 1}{_CLOSE}"


def template_tags(template: str) -> str:
    """Return a template as tags: its root with a bracket, and the labels below it."""
    root, *labels = _LABEL.findall(template)
    return "".join(f"{_OPEN}{tag}{_CLOSE}" for tag in (root, *(label[1:] for label in labels)))
