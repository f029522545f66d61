"""Filter ``language``: the identified language of both sides."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from paraforge.corpus.selection.filters import (
    AcceptedPairs,
    ColumnsFilter,
    Filter,
    FilterParameters,
    Mask,
    MissingPolicy,
    Verdicts,
)

LANGUAGES = ("reference_language", "translation_language")


@dataclass(frozen=True)
class CategoryFilter(ColumnsFilter):
    """Accepts a pair whose value in every one of ``columns`` is one of ``accepted``."""

    accepted: tuple[str, ...]
    missing: MissingPolicy = "accept"

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`~paraforge.corpus.selection.filters.Filter`."""
        accepted = pa.array(self.accepted, pa.string())

        def accept(values: pa.ChunkedArray) -> tuple[Mask, Mask]:
            return pc.is_in(values, value_set=accepted).to_numpy(), values.is_null().to_numpy()

        return self.judged(rows, self.missing, accept)


class LanguageParameters(FilterParameters):
    """The identified language of both sides."""

    kind: Literal["language"]
    languages: list[str] = Field(default_factory=lambda: ["en"], min_length=1)
    missing: MissingPolicy = Field("accept", description="what becomes of unidentified text")

    def columns(self) -> tuple[str, ...]:
        """The languages of both sides."""
        return LANGUAGES

    def refusal(self) -> str:
        """E.g. ``one side is not in en``."""
        return f"one side is not in {' or '.join(self.languages)}"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``lang:de+en``."""
        return "lang", "+".join(sorted(self.languages))

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        return CategoryFilter(self.reason, LANGUAGES, tuple(self.languages), self.missing)
