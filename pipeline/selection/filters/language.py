"""Filter ``language``: the identified language of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from paraforge.selection.filters import (
    AcceptedPairs,
    Filter,
    FilterParameters,
    MissingPolicy,
    Verdicts,
    missing_reason,
)

LANGUAGES = ("reference_language", "translation_language")


@dataclass(frozen=True)
class CategoryFilter:
    """Accepts a pair whose value in every one of ``columns`` is one of ``accepted``."""

    name: str
    columns: tuple[str, ...]
    accepted: tuple[str, ...]
    missing: MissingPolicy = "accept"

    @property
    def reasons(self) -> tuple[str, ...]:
        """The filter's name, and one for a missing value in each column."""
        return (self.name, *(missing_reason(column) for column in self.columns))

    def verdicts(self, rows: pa.Table, shard: int) -> Verdicts:
        """See :class:`~paraforge.selection.filters.Filter`."""
        verdicts = np.zeros(rows.num_rows, np.uint8)
        accepted = pa.array(self.accepted, pa.string())
        for place, column in enumerate(self.columns):
            values = rows.column(column)
            missing = values.is_null().to_numpy()
            refused = ~pc.is_in(values, value_set=accepted).to_numpy() & ~missing
            verdicts[(verdicts == 0) & refused] = 1
            if self.missing == "refuse":
                verdicts[(verdicts < 2) & missing] = 2 + place
        return verdicts


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
        """See :class:`~paraforge.selection.filters.FilterParameters`."""
        return CategoryFilter(self.reason, LANGUAGES, tuple(self.languages), self.missing)
