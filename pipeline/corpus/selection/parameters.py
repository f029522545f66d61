"""Section ``select`` of params.yaml: named filters, each with its kind and rule, and their order. Also
explains the reasons of rejected pairs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError, ValidationInfo, field_validator, model_validator

from paraforge.base.errors import did_you_mean
from paraforge.base.section import Section
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.selection.filters import (
    FilterParameters,
    Name,
    Score,
    filter_kinds,
    missing_reason,
)
from paraforge.intake.bitext.source import REASONS

if TYPE_CHECKING:
    AnyFilter = FilterParameters
else:
    AnyFilter = Annotated[reduce(or_, filter_kinds()), Field(discriminator="kind")]


class SelectParameters(Section):
    """Section ``select``. The first filter that rejects a pair gives it its reason."""

    required: list[Score] = Field(
        default_factory=lambda: ["paraphrase_score"],
        description="scores that a pair must have; a pair without one is rejected as no_SCORE before any "
        "filter",
    )
    deciles: list[Score] = Field(
        default_factory=lambda: ["paraphrase_score"],
        description="scores for which a column SCORE_decile is written, whether or not a filter reads it",
    )
    # Only decides how the filters are read; the resulting list of filters is what selects.
    order: list[str] = Field(
        default_factory=list,
        exclude=True,
        description="names of filters in the order in which they are applied; other filters come last, by "
        "name",
    )
    filters: list[AnyFilter] = Field(
        default_factory=list,
        description="settings of each filter by name, null to remove one; or a list of filters, applied "
        "in its order",
    )

    @field_validator("required", "deciles")
    @classmethod
    def _distinct(cls, names: list[str]) -> list[str]:
        if len(set(names)) < len(names):
            raise ValueError("a score is named twice")
        return names

    @model_validator(mode="before")
    @classmethod
    def _order_of_filters(cls, section: Any) -> Any:
        """Check the names in ``order`` here, because a validator of ``filters`` would blame the filters."""
        settings = section if isinstance(section, Mapping) else {}
        order, filters = settings.get("order"), settings.get("filters", {})
        if isinstance(filters, Mapping) and isinstance(order, list) and {*map(type, order)} == {str}:
            if unknown := [name for name in order if name not in filters]:
                named = ", ".join(filters) or "none"
                raise ValueError(f"order names {', '.join(unknown)}, but the filters are {named}")
            if len(set(order)) < len(order):
                raise ValueError("order names a filter twice")
        return section

    @field_validator("filters", mode="before")
    @classmethod
    def _in_order(cls, filters: Any, info: ValidationInfo) -> Any:
        """Turn a mapping by name into the list of filters in order."""
        if not isinstance(filters, Mapping):
            return filters
        order = info.data.get("order", [])
        settings = {name: settings_of for name, settings_of in filters.items() if settings_of is not None}
        for name, settings_of in settings.items():
            if isinstance(settings_of, Mapping) and "kind" not in settings_of:
                others = [other for other in settings if other != name]
                meant = did_you_mean(name, others)
                listed = f"the filters are {', '.join(others)}, and a new one needs its kind"
                raise ValueError(f"there is no filter '{name}': {listed}{meant}")
        parsed: dict[str, FilterParameters] = TypeAdapter(dict[Name, AnyFilter]).validate_python(settings)
        if named := [name for name, settings_of in parsed.items() if settings_of.name]:
            raise ValueError(f"{', '.join(named)}: the key is the filter's name; leave 'name' out")
        return [
            parsed[name].model_copy(update={} if parsed[name].default_name() == name else {"name": name})
            for name in [*order, *sorted(set(parsed) - set(order))]
            if name in parsed
        ]

    @model_validator(mode="after")
    def _distinct_names(self) -> SelectParameters:
        reasons = [rule.reason for rule in self.filters]
        twice = sorted({reason for reason in reasons if reasons.count(reason) > 1})
        if twice:
            raise ValueError(f"two filters are called {', '.join(twice)}: set a name for each")
        # Rows are counted by reason, so two filters with one reason could not be distinguished.
        taken = {*REASONS, *map(missing_reason, COLUMNS)}
        if used := [reason for reason in reasons if reason in taken]:
            raise ValueError(
                f"{', '.join(used)}: this is the reason of pairs that ingest rejects or that have no score; "
                "choose another name"
            )
        return self

    def decile_scores(self) -> list[str]:
        """Return the scores that need deciles: the requested ones, and those that filters read."""
        read = [score for rule in self.filters for score in rule.tenths_of()]
        return list(dict.fromkeys([*self.deciles, *read]))


def by_name(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section ``select`` with its filters as a mapping by name, in the order of a given list.

    Raises ValidationError if a filter in a list is invalid.
    """
    filters = section.get("filters")
    if not isinstance(filters, list):
        return dict(section)
    names = [rule.reason for rule in SelectParameters.model_validate({"filters": filters}).filters]
    settings = [{key: value for key, value in rule.items() if key != "name"} for rule in filters]
    return {**section, "order": names, "filters": dict(zip(names, settings, strict=True))}


def selection_of(steps: Mapping[str, Any]) -> SelectParameters | None:
    """Return the selection of a published corpus from its manifest's steps; None if it is unknown to this
    version."""
    parameters = (steps.get("select") or {}).get("parameters")
    try:
        return SelectParameters.model_validate(parameters) if parameters else None
    except ValidationError:
        return None  # selected by another version


def explain_reasons(steps: Mapping[str, Any]) -> dict[str, str]:
    """Explain in a few words each reason from ingest or selection.

    steps: the manifest's steps.
    """
    explained = {reason: f"at ingest: {text}" for reason, text in REASONS.items()}
    parameters = selection_of(steps)
    return explained | explain_filters(parameters) if parameters else explained


def explain_filters(parameters: SelectParameters) -> dict[str, str]:
    """Explain in a few words each reason that selection can give."""
    read = [*parameters.required, *(column for rule in parameters.filters for column in rule.columns())]
    missing = {missing_reason(column): f"no {LABELS.get(column, column)}" for column in read}
    return missing | {rule.reason: rule.refusal() for rule in parameters.filters}
