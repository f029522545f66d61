"""From section ``select`` of a corpus to a view with its thresholds, and from a view to such a section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any

from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.selection.filters import FilterParameters
from paraforge.corpus.selection.filters.bounds import BoundsParameters
from paraforge.corpus.selection.filters.flag import FlagParameters
from paraforge.corpus.selection.filters.length import LENGTHS, LengthParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.interface.browse.view import Interval, View


def default_view(published: SelectParameters, scores: Sequence[str], flags: Sequence[str]) -> View:
    """The view whose thresholds are those of the published corpus.

    published: section ``select``. scores: those that have handles. flags: those that can be rejected.
    """
    intervals = dict.fromkeys(scores, Interval())
    refused = dict.fromkeys(flags, False)
    for place, columns in _governed(published, scores, flags).items():
        one = published.filters[place]
        for column in columns:
            if isinstance(one, FlagParameters):
                refused[column] = True
            elif isinstance(one, BoundsParameters):
                minimum = one.minimum if isinstance(one.minimum, float) else None
                maximum = one.maximum if isinstance(one.maximum, float) else None
                intervals[column] = Interval(minimum, maximum, one.missing)
            elif isinstance(one, LengthParameters):
                intervals[column] = Interval(one.minimum, one.maximum)
    return View(intervals, refused)


def _governed(
    published: SelectParameters, scores: Sequence[str], flags: Sequence[str]
) -> dict[int, tuple[str, ...]]:
    """Places and columns of the filters that handles and boxes stand for: of each column the first."""
    found: dict[int, tuple[str, ...]] = {}
    free = {*scores, *flags}
    for place, one in enumerate(published.filters):
        handled = isinstance(one, BoundsParameters | LengthParameters) or (
            isinstance(one, FlagParameters) and one.refuse
        )
        columns = (one.column,) if isinstance(one, FlagParameters) else one.columns()
        if handled and set(columns) <= free:
            found[place] = columns
            free -= set(columns)
    return found


def parameters_of(view: View, published: SelectParameters) -> SelectParameters:
    """Section ``select`` for a view's thresholds; what the page has no handle for is as published.

    Filters that are new come before the first one that looks at all pairs together, or else last.

    view: thresholds and flags; what is looked at plays no part. published: the section to change.
    """
    governed = _governed(published, list(view.intervals), list(view.flags))
    filters: list[dict[str, Any]] = []
    end: int | None = None
    for index, one in enumerate(published.filters):
        if end is None and one.needs_all_pairs:
            end = len(filters)
        filters += _changed(one, view) if index in governed else [one.model_dump()]
    known = {column for columns in governed.values() for column in columns}
    new = [
        _bounds(name, one) for name, one in view.intervals.items() if name not in known and not one.is_open
    ]
    new += [
        {"kind": "flag", "column": name}
        for name, refused in view.flags.items()
        if refused and name not in known
    ]
    place = len(filters) if end is None else end
    filters[place:place] = new
    return SelectParameters.model_validate({**published.model_dump(), "filters": _named(filters)})


def _changed(one: FilterParameters, view: View) -> list[dict[str, Any]]:
    """A filter with a view's bounds; none where they are open."""
    if isinstance(one, FlagParameters):
        return [one.model_dump()] if view.flags[one.column] else []
    if isinstance(one, BoundsParameters):
        interval = view.intervals[one.score]
        point = interval.minimum is not None and interval.minimum == interval.maximum
        closed = {"closed": "both"} if point else {}
        return [] if interval.is_open else [{**one.model_dump(), **vars(interval), **closed}]
    sides = [view.intervals[column] for column in LENGTHS]
    if sides[0] == sides[1] and sides[0].missing == "refuse":
        bounds = {"minimum": sides[0].minimum, "maximum": sides[0].maximum}
        return [] if sides[0].is_open else [{**one.model_dump(), **bounds}]
    return [_bounds(column, side) for column, side in zip(LENGTHS, sides, strict=True) if not side.is_open]


def _bounds(score: str, interval: Interval) -> dict[str, Any]:
    return {"kind": "bounds", "score": score, **vars(interval)}


def _named(filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Filters whose names differ: a new one that would be called as another is gets a name of its own."""
    taken: set[str] = set()
    named = []
    for one in filters:
        reason = SelectParameters.model_validate({"filters": [one]}).filters[0].reason
        names = chain([reason], (f"{reason}_{number}" for number in count(2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        named.append(one if name == reason else {**one, "name": name})
    return named


def section_text(parameters: SelectParameters) -> str:
    """Section ``select`` of params.yaml, without what is as by default."""
    section: Mapping[str, Any] = {
        "required": list(parameters.required),
        "deciles": list(parameters.deciles),
        "filters": [_short(one) for one in parameters.filters],
    }
    return yaml_text({"select": section})


def _short(one: FilterParameters) -> dict[str, Any]:
    given = one.model_dump(mode="json", exclude_defaults=True)
    # As a person writes it: what the filter looks at comes before its bounds, its name last.
    first = [key for key in ("kind", "score", "column") if key in given]
    found = {
        key: given[key]
        for key in (*first, *(key for key in given if key not in (*first, "name")), "name")
        if key in given
    }
    whole = {"minimum", "maximum"} if isinstance(one, LengthParameters) else set()
    return {
        key: int(value) if key in whole and value == int(value) else value for key, value in found.items()
    }
