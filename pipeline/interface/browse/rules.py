"""The filters of section ``select`` as rules on prepared scores: a count gives what selection would."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import numpy as np
import numpy.typing as npt

from paraforge.base.yaml_text import yaml_text
from paraforge.corpus.selection.filters import Filter, FilterParameters
from paraforge.corpus.selection.filters.bounds import Bounds, BoundsParameters, ScoreFilter, score_filter
from paraforge.corpus.selection.filters.flag import FlagParameters
from paraforge.corpus.selection.filters.length import LENGTHS, LengthParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.reasons import explain_filters
from paraforge.intake.bitext.block import REASONS
from paraforge.interface.browse.prepared import FATE, PreparedCorpus
from paraforge.interface.browse.view import Interval, View

KEPT = 1 << 12
"""Rank of a pair that no filter rejects: above that of every reason."""
LEFT_OUT = 0
"""Rank of a pair that did not come to selection: it was rejected at ingest or could not be translated."""


@dataclass(frozen=True)
class ScoreTest:
    """One score's bounds in a filter, both inclusive; a rank is the place of a reason among all."""

    score: int
    low: np.float32
    high: np.float32
    refused: int
    missing: int


@dataclass
class Rules:
    """What decides about a pair: the smallest rank that a test or a group's code gives it.

    reasons: by rank; a reason may have several ranks. tests: of scores.
    codes: for each group, the rank that each of its codes gives.
    unjudged: filters that cannot be asked here: they look at all pairs together, or read files. A pair that
        they rejected when the corpus was published stays rejected, others are accepted.
    """

    reasons: list[str]
    tests: list[ScoreTest]
    codes: dict[str, npt.NDArray[np.int16]]
    unjudged: list[str] = field(default_factory=list)


def rules_of(parameters: SelectParameters | None, corpus: PreparedCorpus) -> Rules:
    """Rules that reject what ``parameters`` reject, for the same reasons.

    parameters: section ``select``; None for rules that accept whatever came to selection.
    corpus: what they are asked about.
    """
    codes = {name: np.full(max(table.num_rows, 1), KEPT, np.int16) for name, table in corpus.tables.items()}
    rules = Rules(["left out"], [], codes)
    _leave_out(rules, corpus, parameters)
    if parameters is None:
        return rules
    required = tuple(name for name in parameters.required if name in corpus.layout.scores)
    _add_score_filter(rules, corpus, score_filter("required", required))
    for one in parameters.filters:
        _add(rules, corpus, one)
    return rules


def _leave_out(rules: Rules, corpus: PreparedCorpus, parameters: SelectParameters | None) -> None:
    """Pairs that failed, and those with a reason that only ingest gives."""
    chosen = explain_filters(parameters) if parameters else {}
    at_ingest = REASONS.keys() - chosen.keys()
    table = corpus.tables[FATE]
    for code, row in enumerate(table.to_pylist()):
        if row.get("failed") is not None or row.get("rejected") in at_ingest:
            rules.codes[FATE][code] = LEFT_OUT


class _NoPairs:
    """In place of all pairs, for filters that look at one pair at a time: they ask for the columns alone."""

    column_names: tuple[str, ...] = ()


def _add(rules: Rules, corpus: PreparedCorpus, one: FilterParameters) -> None:
    built: Filter | None = None
    if not one.needs_all_pairs and set(one.columns()) <= set(corpus.layout.columns):
        # The rest of AcceptedPairs is for filters that need all pairs, which are not asked here.
        built = one.prepare(_NoPairs())  # type: ignore[arg-type]  # only column_names
    if isinstance(built, ScoreFilter) and set(built.columns) <= set(corpus.layout.scores):
        _add_score_filter(rules, corpus, built)
        return
    read = set(built.columns) if built else {""}
    group = next((name for name, columns in corpus.layout.groups.items() if read <= set(columns)), None)
    if built is None or group is None:
        _add_unjudged(rules, corpus, one.reason)
        return
    first = len(rules.reasons)
    rules.reasons += built.reasons
    verdicts = built.verdicts(corpus.tables[group], 0).astype(np.int16)
    _refuse(rules.codes[group], verdicts > 0, first + verdicts - 1)


def _add_score_filter(rules: Rules, corpus: PreparedCorpus, built: ScoreFilter) -> None:
    """Missing values come first: within a filter, they are the reason also where another value is outside."""
    first = len(rules.reasons)
    rules.reasons += [*built.reasons[1:], built.reasons[0]]
    low, high = inclusive(built.bounds)
    for place, column in enumerate(built.columns):
        missing = first + place if built.missing == "refuse" else KEPT
        score = corpus.layout.scores.index(column)
        rules.tests.append(ScoreTest(score, low, high, first + len(built.reasons) - 1, missing))


def inclusive(bounds: Bounds) -> tuple[np.float32, np.float32]:
    """The smallest and the largest 32-bit number inside."""
    low, high = np.float32(-np.inf), np.float32(np.inf)
    if bounds.minimum is not None:
        low = np.float32(bounds.minimum)
    if bounds.maximum is not None:
        high = np.float32(bounds.maximum)
    return low, high


def _add_unjudged(rules: Rules, corpus: PreparedCorpus, reason: str) -> None:
    table = corpus.tables[FATE]
    rules.unjudged.append(reason)
    rules.reasons.append(reason)
    if "rejected" in table.column_names:
        refused = np.array([value == reason for value in table["rejected"].to_pylist()], bool)
        _refuse(rules.codes[FATE], refused, np.full(len(refused), len(rules.reasons) - 1))


def _refuse(
    codes: npt.NDArray[np.int16], refused: npt.NDArray[np.bool_], ranks: npt.NDArray[np.integer]
) -> None:
    """Give codes a rank where no earlier filter rejects them."""
    codes[refused] = np.minimum(codes[refused], ranks[refused])


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
        handled = isinstance(one, BoundsParameters | LengthParameters | FlagParameters)
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
        return [] if interval.is_open else [{**one.model_dump(), **vars(interval)}]
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
