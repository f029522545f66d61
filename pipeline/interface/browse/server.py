"""The page of ``paraforge browse``, and the answers to its script's requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flask import Flask, abort, render_template, request
from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.base.section import problems_of
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.publication.manifest import describe_columns
from paraforge.corpus.scorer import Scale
from paraforge.interface.browse.browser import Current
from paraforge.interface.browse.rules import LONGEST_TEXT, parameters_of, section_text, view_of
from paraforge.interface.query.pairs import fixed, marked_words
from paraforge.interface.web.serving import make_app, problem_page

if TYPE_CHECKING:
    from paraforge.interface.web.serving import Page


def create_app(current: Current, bind: str) -> Flask:
    """Make the application for one corpus.

    current: opens the corpus as it is now, for each request. bind: the address that the server listens on.
    """
    app = make_app("browse", bind)
    app.jinja_env.globals |= {
        "labels": LABELS,
        "descriptions": {one["name"]: one["description"] for one in describe_columns(COLUMNS.values())},
        "number": number_text,
        "inside": inside,
        "outline": outline,
        "marked_words": marked_words,
        "fixed": fixed,
        "longest": LONGEST_TEXT,
    }

    @app.errorhandler(InputError)
    def _replaced(error: InputError) -> Page:
        words = f"{error.message}. Reload this page when 'dvc repro' has finished."
        return problem_page("The corpus cannot be read", words), 503

    def answer(with_pairs: bool) -> Page:
        with current() as browser:
            try:
                view = view_of(request.args, browser.default)
                parameters = parameters_of(view, browser.base)
            except ValidationError as error:
                abort(400, "; ".join(problems_of(error)))
            counted = browser.count(parameters, view.q, with_pairs)
            return render_template(
                "browse.html",
                corpus=browser.manifest.name,
                browser=browser,
                view=view,
                counted=counted,
                section=section_text(parameters),
                sides=browser.pairs(view, counted) if with_pairs else None,
            )

    @app.get("/")
    def page() -> Page:
        return answer(with_pairs=True)

    @app.get("/counts")
    def counts() -> Page:
        return answer(with_pairs=False)

    return app


def number_text(value: float | None) -> str:
    """Format a bound without trailing zeros; empty for none."""
    return "" if value is None else format(value, ".10g")


def outline(counts: Sequence[float], most: float | None = None, line: bool = False) -> str:
    """Draw the counts of equal bins as the data for an SVG path that is 1,000 wide and 100 high: bars, or a
    line through their middles.

    Heights are as the square root of counts, so that small bins can be seen. most: the count that is as high
    as the picture; by default the highest.
    """
    most = max(counts, default=0) if most is None else most
    step = 1000 / max(1, len(counts))
    heights = [100 - 96 * math.sqrt(count / most) if most else 100.0 for count in counts]
    if line and most:
        return "M" + " ".join(f"{(bin + 0.5) * step:.1f} {y:.1f}" for bin, y in enumerate(heights))
    return "".join(
        f"M{bin * step:.1f} 100V{y:.1f}H{(bin + 1) * step:.1f}V100Z"
        for bin, y in enumerate(heights)
        if counts[bin]
    )


def inside(scale: Scale, low: float | None, high: float | None) -> tuple[float, float]:
    """Return where the part of a picture from one bound to another begins, and how wide it is."""
    ends = (scale.low if low is None else low, scale.high if high is None else high)
    left, right = (1000 * min(max((end - scale.low) / (scale.high - scale.low), 0.0), 1.0) for end in ends)
    return round(left, 1), round(max(0.0, right - left), 1)
