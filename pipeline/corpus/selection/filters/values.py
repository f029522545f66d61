"""Filters ``decile``, ``flag`` and ``language``: keep pairs by the value of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator, model_validator

from paraforge.base.errors import did_you_mean
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
    top: int | None = Field(None, ge=1, le=10, description="keep the N highest deciles")
    keep: list[Annotated[int, Field(ge=1, le=10)]] | None = Field(
        None, min_length=1, description="keep only these deciles"
    )

    @model_validator(mode="after")
    def _one_rule(self) -> DecileParameters:
        if (self.top is None) == (self.keep is None):
            raise ValueError("set either top or keep")
        return self

    def default_name(self) -> str:
        """Return ``SCORE_decile``."""
        return decile_column(self.score)

    def tenths(self) -> tuple[int, ...]:
        """Return the kept deciles in ascending order."""
        if self.keep is not None:
            return tuple(sorted(set(self.keep)))
        assert self.top is not None
        return tuple(range(11 - self.top, 11))

    def tenths_of(self) -> tuple[str, ...]:
        """Return the score."""
        return (self.score,)

    def columns(self) -> tuple[str, ...]:
        """Return the score."""
        return (self.score,)

    def threshold(self, cuts: Mapping[str, Sequence[float]]) -> tuple[str, float] | None:
        """Return the score and the value at which the lowest kept decile begins, if all above it are kept."""
        tenths = self.tenths()
        values = cuts.get(self.score, ())
        if tenths[0] == 1 or len(tenths) < 11 - tenths[0] or len(values) < 9:
            return None
        return self.score, values[tenths[0] - 2]

    def refusal(self) -> str:
        """Return e.g. ``not in the top 2 tenths by paraphrase score``."""
        kept = f"the top {self.top} tenths" if self.top else f"tenths {', '.join(map(str, self.tenths()))}"
        return f"not in {kept} by {LABELS[self.score]}"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``dec:sim:9-10``."""
        return "dec", f"{short_name(self.score)}:{_runs(self.tenths())}"

    def prepare(self, pairs: Selection) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        kept = self.tenths()
        columns = (decile_column(self.score),)
        return value_filter(self.reason, columns, lambda column: np.isin(numbers(column)[0], kept))


def _runs(tenths: Sequence[int]) -> str:
    """Return ascending numbers as text with ranges: ``1,9-10`` for 1, 9, 10."""
    runs: list[list[int]] = []
    for number in tenths:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


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
            self.reason, LANGUAGES, lambda found: pc.is_in(found, value_set=accepted).to_numpy(), self.missing
        )
