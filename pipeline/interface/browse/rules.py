"""Converts the choices on the page between address fields, section ``select``, and tests in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.selection.filters import FilterParameters, MissingPolicy, missing_reason
from paraforge.corpus.selection.filters.bounds import BoundsParameters, IntervalParameters
from paraforge.corpus.selection.filters.values import DecileParameters, FlagParameters, LanguageParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.intake.bitext.source import REASONS
from paraforge.interface.query.database import identifier, literal

if TYPE_CHECKING:
    from werkzeug.datastructures import MultiDict

LONGEST_TEXT = 200
FAILED = "(failed)"
_Number = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
Bound = Annotated[_Number | None, BeforeValidator(lambda text: None if text == "" else text)]


class View(BaseModel):
    """The choices on the page.

    bounds: lower and upper bound for every score that has handles; None is no bound.
    flags: for every flag, whether pairs with it are rejected.
    reason: the reason whose rejected pairs are shown; empty for all. q: text to search for.
    draw: seed for the pairs shown.
    """

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    bounds: dict[str, tuple[Bound, Bound]]
    flags: dict[str, bool]
    reason: str = ""
    q: str = Field("", max_length=LONGEST_TEXT)
    draw: int = Field(1, ge=1, le=1_000_000)

    def of(self, column: str) -> tuple[float | None, float | None] | bool:
        """Return the bounds of a score, or whether a flag rejects."""
        return self.bounds[column] if column in self.bounds else self.flags[column]


def view_of(fields: MultiDict[str, str], default: View) -> View:
    """Read the view from an address; missing fields are as in ``default``.

    Raises ValidationError if a value is invalid.
    """
    return View.model_validate(
        {
            **fields.to_dict(),
            "bounds": {
                name: (fields.get(f"{name}.min", low), fields.get(f"{name}.max", high))
                for name, (low, high) in default.bounds.items()
            },
            "flags": {name: fields.get(f"flag.{name}", rejects) for name, rejects in default.flags.items()},
        }
    )


def default_view(published: SelectParameters, scores: Iterable[str], flags: Iterable[str]) -> View:
    """Return the view whose thresholds are those of the published corpus.

    published: section ``select``. scores: scores with handles. flags: flags that can be rejected.
    """
    view = View(bounds=dict.fromkeys(scores, (None, None)), flags=dict.fromkeys(flags, False))
    for rule in _governed(published, view):
        if isinstance(rule, FlagParameters):
            view.flags[rule.column] = True
        else:
            # Numbers: selection has found those that were given as shares.
            view.bounds.update(dict.fromkeys(rule.columns(), (rule.minimum, rule.maximum)))
    return view


def _governed(published: SelectParameters, view: View) -> list[Any]:
    """Find the filters for the handles and boxes: the first one for each column."""
    filters: list[Any] = []
    remaining = {*view.bounds, *view.flags}
    for rule in published.filters:
        if isinstance(rule, IntervalParameters | FlagParameters) and remaining.issuperset(rule.columns()):
            filters.append(rule)
            remaining.difference_update(rule.columns())
    return filters


def parameters_of(view: View, published: SelectParameters) -> SelectParameters:
    """Make section ``select`` for a view's thresholds; everything without a handle stays as published.

    New filters come before the first one that needs all pairs together, otherwise last. Raises
    ValidationError if bounds are outside the scale of their score, or the lower one is above the upper one.
    """
    default = default_view(published, view.bounds, view.flags)
    remaining = [*view.bounds, *view.flags]
    adjustable = _governed(published, view)
    filters: list[FilterParameters] = []
    group_start: int | None = None
    for rule in published.filters:
        if group_start is None and rule.needs_all_pairs:
            group_start = len(filters)
        columns = rule.columns() if rule in adjustable else ()
        remaining = [column for column in remaining if column not in columns]
        changed = any(view.of(column) != default.of(column) for column in columns)
        filters += (
            _filters(view, columns, rule.name, getattr(rule, "missing", "refuse")) if changed else [rule]
        )
    place = len(filters) if group_start is None else group_start
    filters[place:place] = _filters(view, remaining)
    named: dict[str, FilterParameters] = {}
    for rule in filters:
        name = rule.reason
        while name in named:
            name += "_2"
        named[name] = rule if name == rule.reason else rule.model_copy(update={"name": name})
    return SelectParameters.model_validate({**published.model_dump(), "filters": [*named.values()]})


def _filters(
    view: View, columns: Iterable[str], name: str | None = None, missing: MissingPolicy = "refuse"
) -> list[FilterParameters]:
    """Make a view's filters for columns."""
    filters: list[FilterParameters] = []
    for column in columns:
        if view.flags.get(column):
            filters.append(FlagParameters(kind="flag", column=column, name=name))
        elif column in view.bounds and view.bounds[column] != (None, None):
            low, high = view.bounds[column]
            filters.append(
                BoundsParameters(
                    kind="bounds", score=column, minimum=low, maximum=high, missing=missing, name=name
                )
            )
    return filters


def section_text(parameters: SelectParameters) -> str:
    """Write section ``select`` of params.yaml."""
    section = parameters.model_dump(mode="json", exclude={"filters"})
    filters = [rule.model_dump(mode="json", exclude_defaults=True) for rule in parameters.filters]
    return yaml_text({"select": {**section, "filters": [{"kind": item["kind"], **item} for item in filters]}})


@dataclass(frozen=True)
class Test:
    """One test of a pair, in the order of judging.

    reason: reason for pairs that fail it. fails: a condition in SQL that is never NULL.
    score: the score whose handles change it, or None.
    """

    __test__ = False

    reason: str
    fails: str
    score: str | None = None


class Judged:
    """Section ``select`` as expressions in SQL, which reject the same pairs for the same reasons.

    tests: in order. A pair's rank is the place of the first test that it fails, counted from 1, or ``kept``;
    it is 0 if it did not come to selection, which is ``left_out``.
    unjudged: reasons of filters that cannot be evaluated here because they compare pairs or read files. A
        pair that they rejected in the published corpus stays rejected; others are accepted.
    """

    def __init__(self, parameters: SelectParameters, columns: Sequence[str], scores: Iterable[str]) -> None:
        """columns: columns of the prepared pairs. scores: scores with handles."""
        self._scores = frozenset(scores)
        self.tests = [self._missing(name) for name in parameters.required if name in columns]
        self.unjudged: list[str] = []
        for rule in parameters.filters:
            tests = self._tests(rule)
            if tests is None or not set(_read(rule)) <= set(columns):
                self.unjudged.append(rule.reason)
                tests = [Test(rule.reason, f"fate = {literal(rule.reason)}")]
            self.tests += tests
        self.kept = len(self.tests) + 1
        # Pairs that failed, or that ingest rejected.
        self.left_out = f"(fate IN ({', '.join(map(literal, [FAILED, *REASONS]))}))"
        cases = [f"WHEN {test.fails} THEN {place}" for place, test in enumerate(self.tests, start=1)]
        # DuckDB groups by small numbers faster.
        rank = f"CASE WHEN {self.left_out} THEN 0 {' '.join(cases)} ELSE {self.kept} END"
        self.rank = f"({rank})::{'UTINYINT' if self.kept < 256 else 'INT'}"

    def fails(self, *scores: str | None) -> str:
        """Return a condition in SQL for pairs that fail a test of the scores; None stands for all other
        tests."""
        return " OR ".join(test.fails for test in self.tests if test.score in scores) or "false"

    def _tests(self, rule: FilterParameters) -> list[Test] | None:
        """Make a filter's tests, missing values first, because they take precedence over values outside the
        bounds."""
        if isinstance(rule, FlagParameters):
            conditions = [""]
        elif isinstance(rule, DecileParameters):
            conditions = [f" NOT IN ({', '.join(map(str, rule.tenths()))})"]
        elif isinstance(rule, LanguageParameters):
            conditions = [f" NOT IN ({', '.join(map(literal, rule.languages))})"]
        elif isinstance(rule, IntervalParameters):
            # As paraforge.corpus.scorer.inside compares: a bound has the scores' 32 bits.
            conditions = [
                f" {sign} '{float(np.float32(bound))!r}'::FLOAT"
                for sign, bound in (("<", rule.minimum), (">", rule.maximum))
                if isinstance(bound, float)
            ]
        else:
            return None
        columns = _read(rule)
        default = "accept" if isinstance(rule, FlagParameters) else "refuse"
        tests = map(self._missing, columns if getattr(rule, "missing", default) == "refuse" else ())
        return [
            *tests,
            *(
                self._test(rule.reason, name, " OR ".join(f"{identifier(name)}{end}" for end in conditions))
                for name in columns
            ),
        ]

    def _missing(self, column: str) -> Test:
        return self._test(missing_reason(column), column, f"{identifier(column)} IS NULL")

    def _test(self, reason: str, column: str, condition: str) -> Test:
        return Test(reason, f"coalesce({condition}, false)", column if column in self._scores else None)


def _read(rule: FilterParameters) -> tuple[str, ...]:
    return (f"{rule.score}_decile",) if isinstance(rule, DecileParameters) else rule.columns()
