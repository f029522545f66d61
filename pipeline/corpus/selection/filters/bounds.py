"""Filters ``bounds`` and ``length``: keep pairs with a score, or numbers of tokens, within bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from paraforge.base.section import Section
from paraforge.corpus.columns import LABELS, SCORES
from paraforge.corpus.scorer import inside
from paraforge.corpus.scoring.wrong_pairs import compared_scores, judged_scores
from paraforge.corpus.selection.filters import (
    Filter,
    FilterParameters,
    MissingPolicy,
    Score,
    numbers,
    short_name,
    value_filter,
)

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection


LENGTHS = ("reference_tokens", "translation_tokens")


def interval_filter(
    name: str,
    columns: tuple[str, ...],
    minimum: float | None = None,
    maximum: float | None = None,
    missing: MissingPolicy = "refuse",
) -> Filter:
    """Build the filter that accepts pairs whose value in every column is inside a closed interval (see
    :func:`paraforge.corpus.scorer.inside`); None is no bound."""
    return value_filter(name, columns, lambda column: inside(numbers(column)[0], minimum, maximum), missing)


def interval_text(minimum: float | None, maximum: float | None) -> str:
    """Format an interval for signatures: ``1-30``, ``5-`` or ``..-0.7``."""
    low, high = ("" if bound is None else format(bound, ".10g") for bound in (minimum, maximum))
    # A negative bound would merge with the dash.
    dash = ".." if low.startswith("-") or high.startswith("-") else "-"
    return f"{low}{dash}{high}"


def check_scale(score: str, bounds: Mapping[str, Any]) -> None:
    """Raise ValueError if a numeric bound is outside the range of its column."""
    limits = SCORES[score].limits if score in SCORES else None
    low, high = limits or (-math.inf, math.inf)
    for side, bound in bounds.items():
        if isinstance(bound, float) and not low <= bound <= high:
            scale = f"from {low:g} to {high:g}" if math.isfinite(low + high) else ""
            scale = scale or (f"at least {low:g}" if math.isfinite(low) else f"at most {high:g}")
            raise ValueError(f"{side} {bound:g} is outside the scale of {score}: its values are {scale}")


class WrongPairs(Section):
    """A minimum found on mismatched pairs: references with translations of other rows."""

    wrong_pairs: float = Field(
        ge=0, lt=1, description="share of mismatched pairs that may reach the minimum, with 95% confidence"
    )


class GoodPairs(Section):
    """A maximum found on the corpus' own pairs."""

    good_pairs: float = Field(
        ge=0, lt=1, description="share of the pairs that may be above the maximum, with 95% confidence"
    )


def _kind_of_bound(value: Any) -> str:
    return "share" if isinstance(value, dict | WrongPairs | GoodPairs) else "number"


class IntervalParameters(FilterParameters):
    """Two bounds, at least one of them given."""

    minimum: (
        Annotated[
            Annotated[float, Tag("number")] | Annotated[WrongPairs, Tag("share")],
            Discriminator(_kind_of_bound),
        ]
        | None
    ) = Field(
        None,
        description="lower bound; or {wrong_pairs: X}, the share of mismatched pairs that may reach it; "
        "null: none",
    )
    maximum: (
        Annotated[
            Annotated[float, Tag("number")] | Annotated[GoodPairs, Tag("share")],
            Discriminator(_kind_of_bound),
        ]
        | None
    ) = Field(
        None,
        description="upper bound; or {good_pairs: X}, the share of good pairs that may be above it; null: "
        "none",
    )

    @model_validator(mode="after")
    def _ordered(self) -> IntervalParameters:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        low, high = bounds.values()
        if low is None and high is None:
            raise ValueError("set minimum, maximum or both")
        for score in self.columns():
            check_scale(score, bounds)
        if isinstance(low, float) and isinstance(high, float) and low > high:
            raise ValueError(f"minimum {low:g} is above maximum {high:g}")
        return self


class BoundsParameters(IntervalParameters):
    """A score column within bounds."""

    kind: Literal["bounds"]
    score: Score
    missing: MissingPolicy = Field(
        "refuse",
        description="whether to keep pairs without the score; rejected ones have the reason no_SCORE",
    )

    @model_validator(mode="after")
    def _shares_can_be_found(self) -> BoundsParameters:
        if isinstance(self.minimum, WrongPairs) and self.score not in (judged := judged_scores()):
            raise ValueError(
                f"mismatched pairs have no {self.score}: use a number, or one of {', '.join(judged)}"
            )
        if isinstance(self.maximum, GoodPairs) and self.score not in (compared := compared_scores()):
            raise ValueError(
                f"the sample of good pairs has no {self.score}: use a number, or one of {', '.join(compared)}"
            )
        return self

    def default_name(self) -> str:
        """Return the score's name."""
        return self.score

    def columns(self) -> tuple[str, ...]:
        """Return the score."""
        return (self.score,)

    def threshold(self, cuts: Mapping[str, Sequence[float]]) -> tuple[str, float] | None:
        """Return the minimum, if there is one."""
        return (self.score, self.minimum) if isinstance(self.minimum, float) else None

    def refusal(self) -> str:
        """Return e.g. ``trigram overlap above 0.9``."""
        sides = []
        if isinstance(self.minimum, WrongPairs):
            sides = [f"reached by more than {100 * self.minimum.wrong_pairs:g}% of the mismatched pairs"]
        elif self.minimum is not None:
            sides = [f"below {self.minimum:g}"]
        if isinstance(self.maximum, GoodPairs):
            sides.append(f"among the highest {100 * self.maximum.good_pairs:g}% of the pairs")
        elif self.maximum is not None:
            sides.append(f"above {self.maximum:g}")
        return f"{LABELS[self.score]} {' or '.join(sides)}"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``sim:0.4-1``. Raises ValueError if a bound is not a number yet."""
        return short_name(self.score), interval_text(*self._numbers())

    def prepare(self, pairs: Selection) -> Filter:
        """Build the filter. Raises ValueError if a bound is not a number yet."""
        return interval_filter(self.reason, (self.score,), *self._numbers(), self.missing)

    def _numbers(self) -> tuple[float | None, float | None]:
        if isinstance(self.minimum, WrongPairs):
            raise ValueError(f"{self.reason}: the minimum has not been computed yet")
        if isinstance(self.maximum, GoodPairs):
            raise ValueError(f"{self.reason}: the maximum has not been computed yet")
        return self.minimum, self.maximum


class LengthParameters(IntervalParameters):
    """Tokens of the reference and of the translation, each within the bounds."""

    kind: Literal["length"]
    minimum: float | None = Field(None, description="lower bound; null for none")
    maximum: float | None = Field(None, description="upper bound; null for none")

    needs: ClassVar[tuple[str, ...]] = LENGTHS

    def refusal(self) -> str:
        """Return e.g. ``fewer than 1 or more than 30 tokens on one side``."""
        sides = (("fewer than", self.minimum), ("more than", self.maximum))
        return f"{' or '.join(f'{word} {n:g}' for word, n in sides if n is not None)} tokens on one side"

    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return e.g. ``len:1-30``."""
        return "len", interval_text(self.minimum, self.maximum)

    def prepare(self, pairs: Selection) -> Filter:
        """See :class:`~paraforge.corpus.selection.filters.FilterParameters`."""
        return interval_filter(self.reason, LENGTHS, self.minimum, self.maximum)
