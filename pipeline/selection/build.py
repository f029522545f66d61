"""Makes filters of parameters, and checks that the corpus has what they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paraforge.errors import ConfigurationError
from paraforge.selection.decontamination import SIDES, build_decontamination
from paraforge.selection.filters import Bounds, CategoryFilter, DecileFilter, Filter, FlagFilter, ScoreFilter
from paraforge.selection.held_out import read_test_sentences
from paraforge.selection.parameters import (
    BoundsParameters,
    DecileParameters,
    DecontaminationParameters,
    FlagParameters,
    LanguageParameters,
    LengthParameters,
    NearDuplicatesParameters,
    SelectParameters,
)

LENGTHS = ("reference_tokens", "translation_tokens")
LANGUAGES = ("reference_language", "translation_language")
# What to turn on where an optional column is wanted.
_MADE_BY = {
    **dict.fromkeys(LANGUAGES, "language identification in the section 'score'"),
    "cosine": "the sentence-transformers cosine in the section 'score'",
}


def build_filter(parameters: Any) -> tuple[Filter, str | None]:
    """Make a filter that judges each shard by itself.

    Returns:
        The filter, and the SHA-256 of the files it was made from, if any.

    Raises:
        InputError: a test file cannot be read.
    """
    name = parameters.reason
    if isinstance(parameters, LengthParameters):
        return ScoreFilter(name, LENGTHS, Bounds(parameters.minimum, parameters.maximum)), None
    if isinstance(parameters, BoundsParameters):
        bounds = Bounds(parameters.minimum, parameters.maximum, parameters.closed)
        return ScoreFilter(name, (parameters.score,), bounds, parameters.missing), None
    if isinstance(parameters, DecileParameters):
        return DecileFilter(name, parameters.score, parameters.tenths()), None
    if isinstance(parameters, LanguageParameters):
        return CategoryFilter(name, LANGUAGES, tuple(parameters.languages), parameters.missing), None
    if isinstance(parameters, FlagParameters):
        return FlagFilter(name, parameters.column, parameters.refuse), None
    if isinstance(parameters, DecontaminationParameters):
        sentences = (
            sentence
            for file in parameters.files
            for sentence in read_test_sentences(file.location(), file.format, file.columns, file.header)
        )
        built = build_decontamination(name, sentences, exact=parameters.exact, ngram=parameters.ngram)
        return built, built.fingerprint
    raise TypeError(f"{type(parameters).__name__} does not judge shards one by one")


def columns_read(parameters: Any) -> tuple[str, ...]:
    """The columns that a filter needs of the corpus."""
    if isinstance(parameters, LengthParameters):
        return LENGTHS
    if isinstance(parameters, (BoundsParameters, DecileParameters)):
        return (parameters.score,)
    if isinstance(parameters, LanguageParameters):
        return LANGUAGES
    if isinstance(parameters, FlagParameters):
        return (parameters.column,)
    if isinstance(parameters, DecontaminationParameters):
        return SIDES
    if isinstance(parameters, NearDuplicatesParameters):
        return ("reference",)
    return ("source", "line")


def check_columns(parameters: SelectParameters, present: Sequence[str]) -> None:
    """Make sure that the corpus has every column that selection reads.

    Raises:
        ConfigurationError: columns are missing; every one is named, with the parameter that reads it.
    """
    readers: dict[str, tuple[str, ...]] = {}
    readers |= {f"select.required.{place}": (score,) for place, score in enumerate(parameters.required)}
    readers |= {f"select.deciles.{place}": (score,) for place, score in enumerate(parameters.deciles)}
    readers |= {
        f"select.filters.{place} ({one.reason})": columns_read(one)
        for place, one in enumerate(parameters.filters)
    }
    problems = [
        f"{reader}: the corpus has no column '{column}'. "
        + (f"Turn on {_MADE_BY[column]}." if column in _MADE_BY else f"It has {', '.join(present)}.")
        for reader, columns in readers.items()
        for column in columns
        if column not in present
    ]
    if problems:
        raise ConfigurationError(problems)
