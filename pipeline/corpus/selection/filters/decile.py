"""Filter ``decile``: keeps pairs in some deciles of the whole corpus by a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from paraforge.corpus.columns import LABELS
from paraforge.corpus.scoring.verdict import Minimum
from paraforge.corpus.selection.filters import (
    AcceptedPairs,
    Filter,
    FilterParameters,
    ValueFilter,
    check_score,
    decile_column,
    numbers,
    short_name,
)


class DecileParameters(FilterParameters):
    """The tenth of the whole corpus that a pair is in by a score; 10 is the highest."""

    kind: Literal["decile"]
    score: Annotated[str, Field(description="any numeric column")]
    top: int | None = Field(None, ge=1, le=10, description="keep the N highest deciles")
    keep: list[Annotated[int, Field(ge=1, le=10)]] | None = Field(
        None, min_length=1, description="keep only these deciles"
    )

    _known = field_validator("score")(check_score)

    @model_validator(mode="after")
    def _one_rule(self) -> DecileParameters:
        if (self.top is None) == (self.keep is None):
            raise ValueError("set either top or keep")
        return self

    def default_name(self) -> str:
        """``SCORE_decile``."""
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

    def threshold(self, cuts: Mapping[str, Sequence[float]]) -> tuple[str, Minimum] | None:
        """Return where the lowest kept decile begins, if all above it are kept."""
        tenths = self.tenths()
        values = cuts.get(self.score, ())
        if tenths[0] == 1 or len(tenths) < 11 - tenths[0] or len(values) < 9:
            return None
        return self.score, Minimum(values[tenths[0] - 2])

    def refusal(self) -> str:
        """E.g. ``not in the top 2 tenths by paraphrase score``."""
        kept = f"the top {self.top} tenths" if self.top else f"tenths {', '.join(map(str, self.tenths()))}"
        return f"not in {kept} by {LABELS[self.score]}"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """E.g. ``dec:sim:9-10``."""
        return "dec", f"{short_name(self.score)}:{_runs(self.tenths())}"

    def prepare(self, pairs: AcceptedPairs) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        kept = self.tenths()
        columns = (decile_column(self.score),)
        return ValueFilter(self.reason, columns, None, lambda column: np.isin(numbers(column)[0], kept))


def _runs(tenths: Sequence[int]) -> str:
    """``9-10`` for 9, 10; ``1,9-10`` for 1, 9, 10."""
    runs: list[list[int]] = []
    for number in tenths:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
