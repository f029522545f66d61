"""The page of ``paraforge browse``: the state behind it, and the answers to requests of its script."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from flask import Flask, abort, render_template, request
from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.base.section import problems_of
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.publication.datasets import Dataset, open_publication
from paraforge.corpus.publication.manifest import MANIFEST_NAME, REJECTED, Manifest, describe_columns
from paraforge.corpus.publication.verdict_words import verdict_words
from paraforge.corpus.scorer import Scale
from paraforge.corpus.scoring.wrong_pairs import changed_meanings, find_wrong_pairs, other_rows
from paraforge.corpus.selection.parameters import SelectParameters, explain_filters, selection_of
from paraforge.interface.browse.pairs import Array, Mismatched, Pairs, open_pairs
from paraforge.interface.browse.rules import (
    LONGEST_TEXT,
    Judged,
    View,
    default_view,
    parameters_of,
    section_text,
    view_of,
)
from paraforge.interface.query.pairs import format_fixed, marked_words
from paraforge.interface.web.serving import make_app, problem_page

if TYPE_CHECKING:
    from paraforge.interface.web.serving import Page


SHOWN_PAIRS = 10


@dataclass(frozen=True)
class Counted:
    """The counts of a view.

    judged: the tests. words: explanations of the reasons.
    exact: whether the counts are exact, not from a sample.
    came, kept: pairs in the view that reached selection, and those that nothing rejects.
    entering, leaving: pairs that would newly be kept, and that would no longer be kept.
    sources: for each source the pairs that came to selection, and the kept ones.
    reasons: rejected pairs in the view by reason, the most frequent first.
    histograms: for each score, pairs by bin: all, and those that no other score or filter rejects.
    mismatched, altered: shares of the mismatched pairs and of those with an altered meaning that pass.
    """

    judged: Judged
    words: dict[str, str]
    exact: bool
    came: int
    kept: int
    entering: int
    leaving: int
    sources: dict[str, tuple[int, int]]
    reasons: dict[str, int]
    histograms: dict[str, tuple[Array, Array]]
    mismatched: float | None
    altered: float | None

    def words_of(self, reason: str) -> str:
        """Put a reason into words."""
        return self.words.get(reason, reason.replace("_", " "))


Shown = list[tuple[dict[str, Any], str]]
"""Pairs to show, each with the reason for which it is rejected, or an empty one."""


class Browser:
    """Answers the page's requests for one corpus, one at a time."""

    def __init__(self, datasets: list[Dataset], pairs: Pairs) -> None:
        self.corpus = pairs
        self.manifest: Manifest = next(dataset.manifest for dataset in datasets if dataset.manifest)
        self.has_rejected = any(dataset.name == REJECTED for dataset in datasets)
        verdict, kept_pairs = self.manifest.verdict, self.manifest.counts.kept
        known = verdict.get("adequacy") and kept_pairs
        self.adequacy = verdict_words(verdict, kept_pairs)[0] if known else ""
        self.published = selection_of(self.manifest.steps)
        self.base = self.published or SelectParameters(required=[], deciles=[])
        self.default = default_view(self.base, pairs.scales, pairs.flags)
        # The most important scores come first: the paraphrase score, then those of the selection.
        self.scales = dict(
            sorted(
                pairs.scales.items(),
                key=lambda item: (
                    item[0] != "paraphrase_score",
                    self.default.bounds[item[0]] == (None, None),
                ),
            )
        )
        table = find_wrong_pairs([dataset.directory for dataset in datasets])
        samples = {} if table is None else {"wrong": other_rows(table), "changed": changed_meanings(table)}
        mismatched = {name: Mismatched(pairs, name, rows) for name, rows in samples.items() if rows.num_rows}
        self.wrong, self.changed = mismatched.get("wrong"), mismatched.get("changed")

    def count(self, parameters: SelectParameters, text: str = "", exact: bool = True) -> Counted:
        """Count pairs under thresholds: those with a text in a side, or all.

        exact: otherwise the counts are those of a sample, if there are many pairs.
        """
        judged = Judged(parameters, self.corpus.columns, self.scales)
        rows = self.corpus.looked_at(text)
        weight = 1.0 if exact else rows.weight
        verdicts = [
            (rank, source, was_kept, round(pairs * weight))
            for rank, source, was_kept, pairs in self.corpus.count(
                judged, rows.table if exact else rows.sample
            )
        ]
        kept = sum(pairs for rank, _, _, pairs in verdicts if rank == judged.kept)
        stayed = sum(pairs for rank, _, was_kept, pairs in verdicts if was_kept and rank == judged.kept)
        of_source = dict.fromkeys(self.corpus.sources, (0, 0))
        reasons: Counter[str] = Counter()
        for rank, source, _, pairs in verdicts:
            came, passed = of_source[source]
            of_source[source] = (came + pairs * (rank > 0), passed + pairs * (rank == judged.kept))
            if 0 < rank < judged.kept:
                reasons[judged.tests[rank - 1].reason] += pairs
        return Counted(
            judged,
            explain_filters(parameters),
            weight == 1,
            kept + reasons.total(),
            kept,
            kept - stayed,
            sum(pairs for _, _, was_kept, pairs in verdicts if was_kept) - stayed,
            of_source,
            dict(reasons.most_common()),
            self.corpus.histograms(judged, rows.sample),
            self.wrong.share(judged) if self.wrong else None,
            self.changed.share(judged) if self.changed else None,
        )

    def pairs(self, view: View, counted: Counted) -> dict[str, Shown]:
        """Return pairs to show: kept and rejected ones, drawn at random, and mismatched pairs that would
        pass, those with the highest paraphrase score first."""
        judged, rows = counted.judged, self.corpus.looked_at(view.q)
        rejecting = [
            rank
            for rank, test in enumerate(judged.tests, start=1)
            if not view.reason or test.reason == view.reason
        ]
        words = [*(counted.words_of(test.reason) for test in judged.tests), ""]
        shown: dict[str, Shown] = {}
        for side, ranks in (("kept", [judged.kept]), ("rejected", rejecting)):
            drawn = self.corpus.drawn(judged, rows, ranks, SHOWN_PAIRS, view.draw)
            reasons = [words[rank - 1] for _, _, rank in drawn]
            shown[side] = list(zip(self.corpus.read(drawn), reasons, strict=True))
        wrong = self.wrong.passing(judged, SHOWN_PAIRS) if self.wrong else []
        return {**shown, "wrong": [(pair, "") for pair in wrong]}


@contextmanager
def open_browser(corpus: Path, with_rejected: bool = True) -> Iterator[Browser]:
    """Read a published corpus. Raises InputError if there is none, it is damaged, or it has no pairs."""
    datasets = open_publication(corpus, with_rejected)
    if not sum(dataset.rows for dataset in datasets):
        raise InputError("the corpus has no pairs", corpus)
    with open_pairs(datasets) as pairs:
        yield Browser(datasets, pairs)


Current = Callable[[], AbstractContextManager[Browser]]


@contextmanager
def reopening(corpus: Path, with_rejected: bool) -> Iterator[Current]:
    """Read a corpus, and return a context manager that gives it to one thread at a time. If another corpus
    has been published under the same path, it is read again, so that open pages keep working.

    Both raise InputError as :func:`open_browser` does, and while the corpus is incomplete.
    """
    lock = Lock()
    state: tuple[int, int] | None = None
    browser: Browser

    with ExitStack() as opened:

        @contextmanager
        def current() -> Iterator[Browser]:
            nonlocal state, browser
            with lock:
                try:
                    status = (corpus / MANIFEST_NAME).stat()
                except OSError as error:
                    raise InputError("the corpus is being rebuilt", corpus) from error
                if state != (status.st_ino, status.st_mtime_ns):
                    state = None
                    opened.close()
                    browser = opened.enter_context(open_browser(corpus, with_rejected))
                    state = status.st_ino, status.st_mtime_ns
                yield browser

        with current():
            pass
        yield current


def create_app(current: Current, bind: str) -> Flask:
    """Make the application for one corpus.

    current: opens the corpus as it is now, for each request. bind: the address that the server listens on.
    """
    app = make_app("browse", bind)
    app.jinja_env.globals |= {
        "labels": LABELS,
        "descriptions": {
            column["name"]: column["description"] for column in describe_columns(COLUMNS.values())
        },
        "number": number_text,
        "inside": inside,
        "outline": outline,
        "marked_words": marked_words,
        "fixed": format_fixed,
        "longest": LONGEST_TEXT,
    }

    @app.errorhandler(InputError)
    def _replaced(error: InputError) -> Page:
        message = f"{error.message}. Reload this page when 'dvc repro' has finished."
        return problem_page("The corpus cannot be read", message), 503

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
