"""Filters ``decile``, ``flag`` and ``language``: keep pairs by the value of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from paraforge.base.errors import did_you_mean
from paraforge.base.logs import counted
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.selection.filters import (
    Filter,
    FilterParameters,
    MissingPolicy,
    Score,
    decile_column,
    numbers,
    short_name,
    value_filter,
)

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection

FLAGS = [name for name, column in COLUMNS.items() if pa.types.is_boolean(column.type)]
LANGUAGES = ("reference_language", "translation_language")


class DecileParameters(FilterParameters):
    """The tenth of the whole corpus that a pair is in by a score; 10 is the highest."""

    kind: Literal["decile"]
    score: Score
    top: int = Field(ge=1, le=10, description="keep the N highest deciles")

    def default_name(self) -> str:
        """Return ``SCORE_decile``."""
        return decile_column(self.score)

    def tenths(self) -> tuple[int, ...]:
        """Return the kept deciles in ascending order."""
        return tuple(range(11 - self.top, 11))

    def tenths_of(self) -> tuple[str, ...]:
        """Return the score."""
        return (self.score,)

    def columns(self) -> tuple[str, ...]:
        """Return the score."""
        return (self.score,)

    def threshold(self, cuts: Mapping[str, Sequence[float]]) -> tuple[str, float] | None:
        """Return the score and the value at which the lowest kept decile begins; None if all are kept."""
        values = cuts.get(self.score, ())
        return None if self.top == 10 or len(values) < 9 else (self.score, values[9 - self.top])

    def refusal(self) -> str:
        """Return e.g. ``not in the top 2 tenths by paraphrase score``."""
        return f"not in the top {counted(self.top, 'tenth')} by {LABELS[self.score]}"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``dec:sim:9-10``."""
        return "dec", f"{short_name(self.score)}:{'10' if self.top == 1 else f'{11 - self.top}-10'}"

    def prepare(self, pairs: Selection) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        kept = self.tenths()
        columns = (decile_column(self.score),)
        return value_filter(self.reason, columns, lambda column: np.isin(numbers(column)[0], kept))


class FlagParameters(FilterParameters):
    """A flag column such as ``digit_mismatch`` or ``runaway``: a pair with the flag is rejected."""

    kind: Literal["flag"]
    column: str

    @field_validator("column")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in FLAGS:
            raise ValueError(f"not a flag: flags are {', '.join(FLAGS)}{did_you_mean(name, FLAGS)}")
        return name

    def default_name(self) -> str:
        """Return the flag's name."""
        return self.column

    def columns(self) -> tuple[str, ...]:
        """Return the flag."""
        return (self.column,)

    def refusal(self) -> str:
        """Return e.g. ``translation cut off``."""
        return LABELS[self.column]

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``not:runaway``."""
        return "not", self.column

    def prepare(self, pairs: Selection) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`; a missing flag is False."""
        return value_filter(
            self.reason, (self.column,), lambda flags: ~pc.fill_null(flags, False).to_numpy(), "accept"
        )


class LanguageParameters(FilterParameters):
    """The identified language of both sides."""

    kind: Literal["language"]
    languages: list[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]] = Field(
        default_factory=lambda: ["en"], min_length=1, description="codes such as en, as they are identified"
    )
    missing: MissingPolicy = Field("accept", description="whether to keep unidentified text")

    needs: ClassVar[tuple[str, ...]] = LANGUAGES

    def refusal(self) -> str:
        """Return e.g. ``one side is not in en``."""
        return f"one side is not in {' or '.join(self.languages)}"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``lang:de+en``."""
        return "lang", "+".join(sorted(self.languages))

    def prepare(self, pairs: Selection) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        accepted = pa.array(self.languages, pa.string())
        return value_filter(
            self.reason,
            LANGUAGES,
            lambda languages: pc.is_in(languages, value_set=accepted).to_numpy(),
            self.missing,
        )
