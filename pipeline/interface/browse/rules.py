"""What a person has chosen on the page: as fields of an address, as section ``select``, as tests in SQL."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from paraforge.base.errors import InputError
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.selection.filters import FilterParameters, MissingPolicy, missing_reason
from paraforge.corpus.selection.filters.bounds import BoundsParameters
from paraforge.corpus.selection.filters.decile import DecileParameters
from paraforge.corpus.selection.filters.flag import FlagParameters
from paraforge.corpus.selection.filters.language import LanguageParameters
from paraforge.corpus.selection.filters.length import LENGTHS, LengthParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.interface.query.database import identifier, literal

if TYPE_CHECKING:
    from werkzeug.datastructures import MultiDict

LONGEST_TEXT = 200
MOST_DRAWS = 1_000_000
RANDOM = "random"


@dataclass(frozen=True)
class Interval:
    """Bounds of a score; None is no bound. ``missing`` is what becomes of a pair without the score."""

    minimum: float | None = None
    maximum: float | None = None
    missing: MissingPolicy = "refuse"

    @property
    def is_open(self) -> bool:
        """Whether no score is outside."""
        return self.minimum is None and self.maximum is None


@dataclass(frozen=True)
class View:
    """What is on screen.

    intervals: of every score that has handles. flags: of every flag, whether pairs that have it are rejected.
    sources: names of the sources shown; none for all.
    reason: the reason whose rejected pairs are shown; empty for all. text: text to search for.
    order: :data:`RANDOM`, or the score by which pairs near its threshold are shown.
    draw: seed of the pairs shown.
    """

    intervals: Mapping[str, Interval]
    flags: Mapping[str, bool]
    sources: tuple[str, ...] = ()
    reason: str = ""
    text: str = ""
    order: str = RANDOM
    draw: int = 1


def number_text(value: float | None) -> str:
    """Write a bound as people do."""
    return "" if value is None else format(value, ".10g")


def view_of(fields: MultiDict[str, str], default: View, sources: Sequence[str]) -> View:
    """Read the view that an address asks for.

    fields: of the address; what is missing is as in ``default``. sources: names of the corpus' sources.

    Raises InputError if a value is invalid, or a lower bound is above the upper one.
    """
    intervals = {}
    for name, usual in default.intervals.items():
        low = _bound(fields.get(f"{name}.min", number_text(usual.minimum)), f"{name}.min")
        high = _bound(fields.get(f"{name}.max", number_text(usual.maximum)), f"{name}.max")
        if low is not None and high is not None and low > high:
            raise InputError(f"{name}: the lowest, {low:g}, is above the highest, {high:g}")
        missing = fields.get(f"{name}.missing", usual.missing)
        if missing not in ("refuse", "accept"):
            raise InputError(f"{name}.missing must be refuse or accept")
        intervals[name] = Interval(low, high, "accept" if missing == "accept" else "refuse")
    flags = {
        name: fields.get(f"flag.{name}", "1" if usual else "0") == "1"
        for name, usual in default.flags.items()
    }
    chosen = set(fields.getlist("source"))
    order, draw, text = fields.get("order", RANDOM), fields.get("draw", "1"), fields.get("q", "").strip()
    if not (draw.isascii() and draw.isdigit() and len(draw) <= 12 and 1 <= int(draw) <= MOST_DRAWS):
        raise InputError(f"draw must be a number from 1 to {MOST_DRAWS:,}")
    if len(text) > LONGEST_TEXT:
        raise InputError(f"a search has at most {LONGEST_TEXT} characters")
    return View(
        intervals,
        flags,
        tuple(name for name in sources if name in chosen),
        fields.get("reason", ""),
        text,
        order if order in default.intervals else RANDOM,
        int(draw),
    )


def _bound(text: str, name: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError as error:
        raise InputError(f"{name}: '{text[:40]}' is not a number") from error
    if not math.isfinite(value) or abs(value) > 1e9:
        raise InputError(f"{name}: '{text[:40]}' cannot be a bound of a score")
    return value


@dataclass(frozen=True)
class Test:
    """One test of a pair, in the order of judging.

    reason: of the pairs that fail it. fails: a condition in SQL that is never NULL.
    score: whose handles move it, or None.
    """

    __test__ = False

    reason: str
    fails: str
    score: str | None = None


def tests_of(
    parameters: SelectParameters, columns: Sequence[str], scores: Sequence[str]
) -> tuple[list[Test], list[str]]:
    """Translate section ``select`` into tests in SQL that reject the same pairs for the same reasons.

    columns: those of the prepared pairs. scores: those that have handles.

    Returns the tests, and the reasons of filters that cannot be asked here, because they compare pairs or
    read files: a pair that they rejected when the corpus was published stays rejected, others are accepted.
    """
    tests = [_missing(name, scores) for name in parameters.required if name in columns]
    unjudged = []
    for one in parameters.filters:
        found = _tests(one, scores)
        if found is None or not set(_read(one)) <= set(columns):
            unjudged.append(one.reason)
            found = [Test(one.reason, f"fate = {literal(one.reason)}")]
        tests += found
    return tests, unjudged


def _read(one: FilterParameters) -> tuple[str, ...]:
    return (f"{one.score}_decile",) if isinstance(one, DecileParameters) else one.columns()


def _tests(one: FilterParameters, scores: Sequence[str]) -> list[Test] | None:
    """Missing values come first: within a filter, they are the reason even if another value is outside."""
    if isinstance(one, FlagParameters):
        return [Test(one.reason, f"coalesce({identifier(one.column)}, false)")]
    if isinstance(one, LanguageParameters):
        listed = ", ".join(map(literal, one.languages))
        lacking = [_missing(name, scores) for name in _read(one)] if one.missing == "refuse" else []
        outside = [f"coalesce({identifier(name)} NOT IN ({listed}), false)" for name in _read(one)]
        return [*lacking, Test(one.reason, " OR ".join(outside))]
    if isinstance(one, DecileParameters):
        column = identifier(_read(one)[0])
        kept = ", ".join(map(str, one.tenths()))
        lacking = [Test(missing_reason(one.score), f"{column} IS NULL")]
        return [*lacking, Test(one.reason, f"coalesce({column} NOT IN ({kept}), false)")]
    if not isinstance(one, BoundsParameters | LengthParameters):
        return None
    refuse = not isinstance(one, BoundsParameters) or one.missing == "refuse"
    lacking = [_missing(name, scores) for name in one.columns()] if refuse else []
    bounds = [("<", one.minimum), (">", one.maximum)]
    return lacking + [
        Test(one.reason, f"coalesce({_outside(name, bounds)}, false)", name) for name in one.columns()
    ]


def _missing(column: str, scores: Sequence[str]) -> Test:
    return Test(missing_reason(column), f"{identifier(column)} IS NULL", column if column in scores else None)


def _outside(column: str, bounds: Sequence[tuple[str, Any]]) -> str:
    """Compare as :func:`paraforge.corpus.scorer.inside` does: a bound has the scores' 32 bits."""
    return " OR ".join(
        f"{identifier(column)} {sign} '{float(np.float32(bound))!r}'::FLOAT"
        for sign, bound in bounds
        if bound is not None
    )


def default_view(published: SelectParameters, scores: Sequence[str], flags: Sequence[str]) -> View:
    """Return the view whose thresholds are those of the published corpus.

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
    """Find the filters that handles and boxes stand for: places and columns, of each column the first."""
    found: dict[int, tuple[str, ...]] = {}
    free = {*scores, *flags}
    for place, one in enumerate(published.filters):
        handled = isinstance(one, BoundsParameters | LengthParameters | FlagParameters)
        if handled and set(one.columns()) <= free:
            found[place] = one.columns()
            free -= set(one.columns())
    return found


def parameters_of(view: View, published: SelectParameters) -> SelectParameters:
    """Make section ``select`` for a view's thresholds; what the page has no handle for is as published.

    New filters come before the first one that looks at all pairs together, or else last.
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
    """Give a filter a view's bounds; none where they are open."""
    if isinstance(one, FlagParameters):
        return [one.model_dump()] if view.flags[one.column] else []
    if isinstance(one, BoundsParameters):
        interval = view.intervals[one.score]
        return [] if interval.is_open else [{**one.model_dump(), **vars(interval)}]
    sides = [view.intervals[column] for column in LENGTHS]
    if sides[0] == sides[1] and sides[0].missing == "refuse":
        bounds = {"minimum": sides[0].minimum, "maximum": sides[0].maximum}
        return [] if sides[0].is_open else [{**one.model_dump(), **bounds}]
    return [_bounds(column, side) for column, side in zip(LENGTHS, sides, strict=True) if not side.is_open]


def _bounds(score: str, interval: Interval) -> dict[str, Any]:
    return {"kind": "bounds", "score": score, **vars(interval)}


def _named(filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a new filter a name of its own if it would have the name of another."""
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
    """Write section ``select`` of params.yaml, without defaults."""
    section: Mapping[str, Any] = {
        "required": list(parameters.required),
        "deciles": list(parameters.deciles),
        "filters": [_short(one) for one in parameters.filters],
    }
    return yaml_text({"select": section})


def _short(one: FilterParameters) -> dict[str, Any]:
    """Order the keys as a person does: what the filter looks at comes before its bounds, its name last."""
    given = one.model_dump(mode="json", exclude_defaults=True)
    first = [key for key in ("kind", "score", "column") if key in given]
    keys = [*first, *(key for key in given if key not in (*first, "name")), *(["name"] if one.name else [])]
    whole = {"minimum", "maximum"} if isinstance(one, LengthParameters) else set()
    return {key: int(given[key]) if key in whole and given[key] % 1 == 0 else given[key] for key in keys}
