"""Section ``select`` of params.yaml: an ordered list of filters, each with its kind and its rule."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError, field_validator, model_validator

from paraforge.bitext.reasons import REASONS
from paraforge.section import Section
from paraforge.selection.filters import FilterParameters, check_score, filter_kinds

if TYPE_CHECKING:
    AnyFilter = FilterParameters
else:
    AnyFilter = Annotated[reduce(or_, filter_kinds()), Field(discriminator="kind")]


class SelectParameters(Section):
    """Section ``select``: the first filter that refuses a pair is its ``rejected``."""

    required: list[Annotated[str, Field(description="any numeric column")]] = Field(
        default_factory=lambda: ["paraphrase_score"],
        description="scores that a pair must have; one without is refused for no_SCORE before any filter",
    )
    deciles: list[str] = Field(
        default_factory=lambda: ["paraphrase_score"],
        description="scores of which a column SCORE_decile is written, whether or not a filter reads it",
    )
    filters: list[AnyFilter] = Field(default_factory=list, description="in the order of judging")

    @field_validator("required", "deciles")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        for name in names:
            check_score(name)
        if len(set(names)) < len(names):
            raise ValueError("a score is named twice")
        return names

    @model_validator(mode="after")
    def _distinct_names(self) -> SelectParameters:
        reasons = [one.reason for one in self.filters]
        twice = sorted({reason for reason in reasons if reasons.count(reason) > 1})
        if twice:
            raise ValueError(f"two filters are called {', '.join(twice)}: give them names")
        # Rows are counted by reason: who refused them could not be distinguished any more.
        if of_ingest := [reason for reason in reasons if reason in REASONS]:
            raise ValueError(f"{', '.join(of_ingest)}: ingest has a reason of that name; choose another")
        return self

    def decile_scores(self) -> list[str]:
        """Scores that are cut into tenths: those asked for, and those that filters read."""
        read = [score for one in self.filters for score in one.tenths_of()]
        return list(dict.fromkeys([*self.deciles, *read]))


def selection_of(steps: Mapping[str, Any]) -> SelectParameters | None:
    """What a published corpus was selected with, by what its manifest says of each step; None where that is
    not known, or not known any more."""
    parameters = (steps.get("select") or {}).get("parameters")
    try:
        return SelectParameters.model_validate(parameters) if parameters else None
    except ValidationError:
        return None  # selected by another version
