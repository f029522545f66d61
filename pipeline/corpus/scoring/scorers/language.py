"""Identifies the language of both sides with py3langid, which includes a model of 139 languages."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import ConfigurationError, require
from paraforge.corpus.scorer import Column, Scorer, ScorerChoice
from paraforge.intake.bitext import languages

if TYPE_CHECKING:
    from paraforge.base.text.language_identification import LanguageModel
    from paraforge.corpus.scoring.pairs import Pairs

logger = logging.getLogger(__name__)

PACKAGE: Final = "py3langid"
EXTRA: Final = "language"
# Letters of any script, and numbers that are not decimal digits.
_LETTER: Final = r"[\p{L}\p{Nl}\p{No}]"


def is_available() -> bool:
    """Return whether the optional package is installed."""
    return find_spec(PACKAGE) is not None


def fingerprint() -> str:
    """Return the name and version of the package, on which the result depends."""
    from importlib.metadata import version

    require(PACKAGE, EXTRA)
    return f"{PACKAGE} {version(PACKAGE)}"


class LanguageIdentification(Scorer):
    """The most probable language of each side: ISO 639-1 code, or 639-3 for a language without one. A text
    without a letter has none (null)."""

    columns = (
        Column("reference_language", pa.string(), "language of the reference as identified (ISO 639-1)"),
        Column("translation_language", pa.string(), "language of the translation as identified (ISO 639-1)"),
    )
    place = 60

    @classmethod
    def build(cls, choice: ScorerChoice) -> LanguageIdentification | None:
        """Return the scorer if languages are to be identified."""
        return cls(choice.languages) if choice.identify_language else None

    def __init__(self, candidates: Sequence[str] | None = None) -> None:
        """Load the model. candidates: codes of the languages to distinguish; None for all. Short texts are
        identified better among few.

        Raises MissingPackageError if py3langid is not installed, ConfigurationError for an unknown code.
        """
        require(f"{PACKAGE}.langid", EXTRA)
        self._identifier, self._model = _load(None if candidates is None else tuple(candidates))

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """Identify both sides: one string column each, null if a side has no letter."""
        return {
            "reference_language": self._identify(pairs.reference),
            "translation_language": self._identify(pairs.translation),
        }

    def _identify(self, texts: Any) -> Any:
        distinct = texts.dictionary_encode()
        lettered = pc.match_substring_regex(distinct.dictionary, _LETTER)
        languages = self._classify(distinct.dictionary.filter(lettered))
        codes = pc.replace_with_mask(pa.nulls(len(lettered), pa.string()), lettered, languages)
        return codes.take(distinct.indices)

    def _classify(self, texts: Any) -> Any:
        if self._model is None:
            return pa.array([self._identifier.classify(text)[0] for text in texts.to_pylist()], pa.string())
        return pa.array(self._model.labels, pa.string()).take(pa.array(self._model.classify(texts)))


@lru_cache(maxsize=2)
def _load(candidates: tuple[str, ...] | None) -> tuple[Any, LanguageModel | None]:
    """Return the package's identifier for these languages, and its model as arrays."""
    from paraforge.base.text.language_identification import load_language_model

    identifier = copy(languages.identifier())
    if candidates is not None:
        known = identifier.labels
        unknown = [code for code in candidates if code not in known]
        if unknown:
            told = f"the language identifier does not know {', '.join(unknown)}"
            raise ConfigurationError([f"{told}; use some of {', '.join(sorted(known))}"])
        identifier.set_languages(list(candidates))
    model = load_language_model(identifier)
    if model is None:
        logger.warning(
            "%s is another version than expected: identifying languages one text at a time", fingerprint()
        )
    return identifier, model
