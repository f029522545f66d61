"""Identifies the language of both sides with py3langid, whose package ships its model of 139 languages."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from paraforge.errors import ConfigurationError, require
from paraforge.scoring.scorer import Scorer, ScorerChoice
from paraforge.shards.column import column

if TYPE_CHECKING:
    from paraforge.scoring.pairs import Pairs

logger = logging.getLogger(__name__)

PACKAGE: Final = "py3langid"
EXTRA: Final = "language"
_LETTER: Final = re.compile(r"[^\W\d_]")


def is_available() -> bool:
    """Whether the optional package is installed."""
    return find_spec(PACKAGE) is not None


def fingerprint() -> str:
    """Name and version of the package, on which the result depends."""
    from importlib.metadata import version

    require(PACKAGE, EXTRA)
    return f"{PACKAGE} {version(PACKAGE)}"


class LanguageIdentification(Scorer):
    """The most probable language of each side: ISO 639-1 code, or 639-3 for a language without one. A text
    without a letter has none (null)."""

    fields = (
        column("reference_language", pa.string(), "language of the reference as identified (ISO 639-1)"),
        column("translation_language", pa.string(), "language of the translation as identified (ISO 639-1)"),
    )
    place = 60

    @classmethod
    def build(cls, choice: ScorerChoice) -> LanguageIdentification | None:
        """Where languages are wanted."""
        return cls(choice.languages) if choice.identify_language else None

    def __init__(self, candidates: Sequence[str] | None = None) -> None:
        """Load the model.

        candidates: codes of the languages to tell apart; all that the model knows where None. Short texts are
            identified better among few candidates.

        Raises:
            MissingPackageError: py3langid is not installed.
            ConfigurationError: the model does not know a candidate.
        """
        langid = require(f"{PACKAGE}.langid", EXTRA)
        self._identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
        if candidates is not None:
            known = self._identifier.labels
            unknown = [code for code in candidates if code not in known]
            if unknown:
                raise ConfigurationError(
                    [f"score.languages: {', '.join(unknown)} not known; there are {', '.join(sorted(known))}"]
                )
            self._identifier.set_languages(list(candidates))
        from paraforge.scoring.language_model import load_language_model

        self._model = load_language_model(self._identifier)
        if self._model is None:
            logger.warning("%s is not as expected: identifying languages text by text", fingerprint())

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        """string; null where a side has no letter."""
        return {
            "reference_language": self._identify(pairs.reference),
            "translation_language": self._identify(pairs.translation),
        }

    def _identify(self, texts: Any) -> Any:
        distinct = texts.dictionary_encode()
        values = distinct.dictionary.to_pylist()
        lettered = [place for place, text in enumerate(values) if _LETTER.search(text)]
        languages: list[str | None] = [None] * len(values)
        for place, language in zip(lettered, self._classify([values[p] for p in lettered]), strict=True):
            languages[place] = language
        return pa.array(languages, pa.string()).take(distinct.indices)

    def _classify(self, texts: list[str]) -> list[str]:
        if self._model is None:
            return [self._identifier.classify(text)[0] for text in texts]
        labels = self._model.labels
        return [labels[number] for number in self._model.classify(texts).tolist()]
