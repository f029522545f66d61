"""What a person has chosen on the page: as fields of an address, as section ``select``, as tests in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from paraforge.base.errors import InputError
from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.selection.filters import FilterParameters, MissingPolicy, missing_reason
from paraforge.corpus.selection.filters.bounds import BoundsParameters, IntervalParameters
from paraforge.corpus.selection.filters.decile import DecileParameters
from paraforge.corpus.selection.filters.flag import FlagParameters
from paraforge.corpus.selection.filters.language import LanguageParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.intake.bitext.block import REASONS
from paraforge.interface.query.database import identifier, literal

if TYPE_CHECKING:
    from werkzeug.datastructures import MultiDict

LONGEST_TEXT = 200
MOST_DRAWS = 1_000_000
RANDOM = "random"
FAILED = "(failed)"


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


def default_view(published: SelectParameters, scores: Iterable[str], flags: Iterable[str]) -> View:
    """Return the view whose thresholds are those of the published corpus.

    published: section ``select``. scores: those that have handles. flags: those that can be rejected.
    """
    intervals, refused = dict.fromkeys(scores, Interval()), dict.fromkeys(flags, False)
    for one in _governed(published, {*intervals, *refused}):
        if isinstance(one, FlagParameters):
            refused[one.column] = True
        else:
            intervals |= dict.fromkeys(one.columns(), _interval(one))
    return View(intervals, refused)


def _interval(one: IntervalParameters) -> Interval:
    """Give the bounds of a filter; those that are shares of some pairs are not numbers, and stay open."""
    low, high = (side if isinstance(side, float) else None for side in (one.minimum, one.maximum))
    return Interval(low, high, one.missing if isinstance(one, BoundsParameters) else "refuse")


def _governed(published: SelectParameters, free: set[str]) -> list[IntervalParameters | FlagParameters]:
    """Find the filters that handles and boxes stand for: of each column the first one."""
    found: list[IntervalParameters | FlagParameters] = []
    for one in published.filters:
        if isinstance(one, IntervalParameters | FlagParameters) and free.issuperset(one.columns()):
            found.append(one)
            free = free.difference(one.columns())
    return found


def parameters_of(view: View, published: SelectParameters) -> SelectParameters:
    """Make section ``select`` for a view's thresholds; what the page has no handle for is as published.

    New filters come before the first one that looks at all pairs together, or else last. Raises
    ValidationError if a bound is outside the scale of its score.
    """
    usual = default_view(published, view.intervals, view.flags)
    left = dict.fromkeys([*view.intervals, *view.flags])
    governed = _governed(published, set(left))
    filters: list[FilterParameters] = []
    end: int | None = None
    for one in published.filters:
        if end is None and one.needs_all_pairs:
            end = len(filters)
        if one not in governed:
            filters.append(one)
            continue
        own = {column: left.pop(column) for column in one.columns()}
        same = _thresholds(own, view) == _thresholds(own, usual)
        filters += [one] if same else _filters(own, view, one.name)
    place = len(filters) if end is None else end
    filters[place:place] = _filters(left, view)
    return SelectParameters.model_validate({**published.model_dump(), "filters": _named(filters)})


def _thresholds(columns: Iterable[str], view: View) -> list[Interval | bool | None]:
    return [view.intervals.get(name, view.flags.get(name)) for name in columns]


def _filters(columns: Iterable[str], view: View, name: str | None = None) -> list[FilterParameters]:
    """Make the filters that a view has for columns."""
    found: list[FilterParameters] = []
    for column in columns:
        interval = view.intervals.get(column)
        if interval is None and view.flags[column]:
            found.append(FlagParameters(kind="flag", column=column, name=name))
        elif interval is not None and not interval.is_open:
            found.append(BoundsParameters(kind="bounds", score=column, name=name, **vars(interval)))
    return found


def _named(filters: Sequence[FilterParameters]) -> list[FilterParameters]:
    """Give a filter a name of its own if it would have the name of another."""
    named: dict[str, FilterParameters] = {}
    for one in filters:
        names = chain([one.reason], (f"{one.reason}_{number}" for number in count(2)))
        name = next(name for name in names if name not in named)
        named[name] = one if name == one.reason else one.model_copy(update={"name": name})
    return [*named.values()]


def section_text(parameters: SelectParameters) -> str:
    """Write section ``select`` of params.yaml, without defaults."""
    filters = []
    for one in parameters.filters:
        given = one.model_dump(mode="json", exclude_defaults=True)
        # What the filter looks at comes before its bounds.
        keys = [key for key in dict.fromkeys(("kind", "score", "column", *given)) if key in given]
        filters.append({key: _whole(given[key]) for key in keys})
    lists = {"required": list(parameters.required), "deciles": list(parameters.deciles)}
    return yaml_text({"select": {**lists, "filters": filters}})


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


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


class Judged:
    """Section ``select`` as expressions in SQL, which reject the same pairs for the same reasons.

    tests: in order. A pair's rank is the place of the first test that it fails, counted from 1, or ``kept``;
    it is 0 if it did not come to selection, which is ``left_out``.
    unjudged: reasons of filters that cannot be asked, because they compare pairs or read files: a pair that
    they rejected when the corpus was published stays rejected, others are accepted.
    """

    def __init__(self, parameters: SelectParameters, columns: Sequence[str], scores: Iterable[str]) -> None:
        """columns: those of the prepared pairs. scores: those that have handles."""
        self._scores = frozenset(scores)
        self.tests = [self._missing(name) for name in parameters.required if name in columns]
        self.unjudged: list[str] = []
        for one in parameters.filters:
            found = self._tests(one)
            if found is None or not set(_read(one)) <= set(columns):
                self.unjudged.append(one.reason)
                found = [Test(one.reason, f"fate = {literal(one.reason)}")]
            self.tests += found
        self.kept = len(self.tests) + 1
        self.left_out = left_out(REASONS)
        cases = [f"WHEN {test.fails} THEN {place}" for place, test in enumerate(self.tests, start=1)]
        # DuckDB groups by small numbers faster.
        rank = f"CASE WHEN {self.left_out} THEN 0 {' '.join(cases)} ELSE {self.kept} END"
        self.rank = f"({rank})::{'UTINYINT' if self.kept < 256 else 'INT'}"

    def fails(self, *scores: str | None) -> str:
        """Give a condition in SQL for pairs that fail a test of the scores; None is for all other tests."""
        return " OR ".join(test.fails for test in self.tests if test.score in scores) or "false"

    def _tests(self, one: FilterParameters) -> list[Test] | None:
        """Make a filter's tests, missing values first: they are the reason even where another is outside."""
        columns = _read(one)
        if isinstance(one, FlagParameters):
            return [Test(one.reason, f"coalesce({identifier(one.column)}, false)")]
        if isinstance(one, DecileParameters):
            outside = f"{identifier(columns[0])} NOT IN ({', '.join(map(str, one.tenths()))})"
            lacking = Test(missing_reason(one.score), f"{identifier(columns[0])} IS NULL")
            return [lacking, Test(one.reason, f"coalesce({outside}, false)")]
        missing = [self._missing(name) for name in columns] if getattr(one, "missing", "") != "accept" else []
        if isinstance(one, LanguageParameters):
            listed = ", ".join(map(literal, one.languages))
            outsides = [f"coalesce({identifier(name)} NOT IN ({listed}), false)" for name in columns]
            return [*missing, Test(one.reason, " OR ".join(outsides))]
        if not isinstance(one, IntervalParameters):
            return None
        bounds = []
        for sign, bound in (("<", one.minimum), (">", one.maximum)):
            if isinstance(bound, float):
                # As paraforge.corpus.scorer.inside compares: a bound has the scores' 32 bits.
                bounds.append(f"{sign} '{float(np.float32(bound))!r}'::FLOAT")
            elif bound is not None:
                return None
        return missing + [
            Test(
                one.reason, f"coalesce({' OR '.join(f'{identifier(name)} {b}' for b in bounds)}, false)", name
            )
            for name in columns
        ]

    def _missing(self, column: str) -> Test:
        score = column if column in self._scores else None
        return Test(missing_reason(column), f"{identifier(column)} IS NULL", score)


def left_out(reasons: Iterable[str]) -> str:
    """Give a condition in SQL for pairs that failed or were rejected for one of the reasons."""
    return f"(fate IN ({', '.join(map(literal, [FAILED, *reasons]))}))"


def _read(one: FilterParameters) -> tuple[str, ...]:
    return (f"{one.score}_decile",) if isinstance(one, DecileParameters) else one.columns()
