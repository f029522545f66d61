"""What a person has chosen on the page, to and from the page's address."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paraforge.base.errors import InputError
from paraforge.corpus.selection.filters import MissingPolicy

if TYPE_CHECKING:
    from werkzeug.datastructures import MultiDict

LONGEST_TEXT = 200
MOST_DRAWS = 1_000_000
SOURCE, REASON, TEXT, ORDER, DRAW = "source", "reason", "q", "order", "draw"
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
    sources: names of those looked at; none for all.
    reason: the reason whose rejected pairs are shown; empty for all. text: what is searched for.
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

    @property
    def is_narrowed(self) -> bool:
        """Whether not all pairs are looked at."""
        return bool(self.sources or self.text)

    @property
    def everything(self) -> View:
        """The same thresholds, and all pairs looked at."""
        return replace(self, sources=(), reason="", text="", order=RANDOM, draw=1)


def number_text(value: float | None) -> str:
    """A bound as people write it."""
    return "" if value is None else format(value, ".10g")


def to_fields(view: View, default: View) -> list[tuple[str, str]]:
    """The fields of an address that reproduces a view: what differs from the default."""
    fields: list[tuple[str, str]] = []
    for name, interval in view.intervals.items():
        usual = default.intervals[name]
        if interval.minimum != usual.minimum:
            fields.append((f"{name}.min", number_text(interval.minimum)))
        if interval.maximum != usual.maximum:
            fields.append((f"{name}.max", number_text(interval.maximum)))
        if interval.missing != usual.missing:
            fields.append((f"{name}.missing", interval.missing))
    fields += [
        (f"flag.{name}", "1" if refused else "0")
        for name, refused in view.flags.items()
        if refused != default.flags[name]
    ]
    fields += [(SOURCE, name) for name in view.sources]
    for key, value, usual_value in (
        (REASON, view.reason, ""),
        (TEXT, view.text, ""),
        (ORDER, view.order, RANDOM),
        (DRAW, str(view.draw), "1"),
    ):
        if value != usual_value:
            fields.append((key, value))
    return fields


def from_fields(fields: MultiDict[str, str], default: View, sources: Sequence[str]) -> View:
    """The view that an address asks for.

    fields: of the address; the last of several values counts, as a checkbox after its hidden field does.
    default: what is not said is as here. sources: names of the corpus' sources.

    Raises InputError: a value is none, or a lower bound is above the upper one.
    """

    def last(key: str, usual: str = "") -> str:
        return (fields.getlist(key) or [usual])[-1]

    intervals = {}
    for name, usual in default.intervals.items():
        low = _bound(last(f"{name}.min", number_text(usual.minimum)), f"{name}.min")
        high = _bound(last(f"{name}.max", number_text(usual.maximum)), f"{name}.max")
        if low is not None and high is not None and low > high:
            raise InputError(f"{name}: the lowest, {low:g}, is above the highest, {high:g}")
        missing = last(f"{name}.missing", usual.missing)
        if missing not in ("refuse", "accept"):
            raise InputError(f"{name}.missing is refuse or accept")
        intervals[name] = Interval(low, high, "accept" if missing == "accept" else "refuse")
    flags = {
        name: last(f"flag.{name}", "1" if usual else "0") == "1" for name, usual in default.flags.items()
    }
    chosen = set(fields.getlist(SOURCE))
    order = last(ORDER, RANDOM)
    draw = last(DRAW, "1")
    if not (draw.isascii() and draw.isdigit() and len(draw) <= 12 and 1 <= int(draw) <= MOST_DRAWS):
        raise InputError(f"draw is a number from 1 to {MOST_DRAWS:,}")
    text = last(TEXT).strip()
    if len(text) > LONGEST_TEXT:
        raise InputError(f"a search has at most {LONGEST_TEXT} characters")
    return View(
        intervals,
        flags,
        tuple(name for name in sources if name in chosen),
        last(REASON),
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
        raise InputError(f"{name}: '{text[:40]}' is no number") from error
    if not math.isfinite(value) or abs(value) > 1e9:
        raise InputError(f"{name}: '{text[:40]}' is no bound of a score")
    return value
