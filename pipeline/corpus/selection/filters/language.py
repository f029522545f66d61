"""Filter ``language``: keeps pairs whose sides are identified as the given languages."""

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from paraforge.corpus.selection.filters import (
    AcceptedPairs,
    Filter,
    FilterParameters,
    MissingPolicy,
    ValueFilter,
)

LANGUAGES = ("reference_language", "translation_language")


class LanguageParameters(FilterParameters):
    """The identified language of both sides."""

    kind: Literal["language"]
    languages: list[str] = Field(default_factory=lambda: ["en"], min_length=1)
    missing: MissingPolicy = Field("accept", description="whether to keep unidentified text")

    def columns(self) -> tuple[str, ...]:
        """Return the languages of both sides."""
        return LANGUAGES

    def refusal(self) -> str:
        """E.g. ``one side is not in en``."""
        return f"one side is not in {' or '.join(self.languages)}"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``lang:de+en``."""
        return "lang", "+".join(sorted(self.languages))

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        accepted = pa.array(self.languages, pa.string())
        return ValueFilter(
            self.reason,
            LANGUAGES,
            None,
            lambda values: pc.is_in(values, value_set=accepted).to_numpy(),
            self.missing,
        )
