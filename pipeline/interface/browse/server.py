"""The page of ``paraforge browse``, and what its script asks for."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, abort, g, render_template, request
from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.publication.manifest import describe_columns
from paraforge.interface.browse.browser import Browser
from paraforge.interface.browse.histogram import handle_step
from paraforge.interface.browse.rules import (
    LONGEST_TEXT,
    RANDOM,
    number_text,
    parameters_of,
    section_text,
    view_of,
)
from paraforge.interface.web.serving import HostPolicy, make_app, problem_page, same_origin

if TYPE_CHECKING:
    from paraforge.interface.web.serving import Page


def create_app(current: Callable[[], Browser], policy: HostPolicy) -> Flask:
    """Make the application of one corpus. current: gives the corpus as it is now, before each request."""
    app = make_app("browse", policy)

    @app.before_request
    def _as_it_is_now() -> None:
        if request.endpoint == "static":
            return
        try:
            g.browser = current()
        except InputError as error:
            abort(503, f"{error.message}. Reload this page when 'dvc repro' has finished.")

    @app.errorhandler(InputError)
    def _replaced(error: InputError) -> Page:
        words = f"{error.message}. The corpus may have been replaced: reload this page."
        return problem_page("The corpus cannot be read", words), 503

    def found(with_pairs: bool = True) -> dict[str, Any]:
        # Another site could otherwise keep this machine busy, though it could not read the answers.
        if not same_origin(request) and request.headers.get("Sec-Fetch-Dest") != "document":
            abort(403, "This address was not asked for by a page of this server.")
        browser: Browser = g.browser
        try:
            view = view_of(request.args, browser.default, browser.corpus.sources)
            parameters = parameters_of(view, browser.base)
        except InputError as error:
            abort(400, f"{error}.")
        except ValidationError as error:
            abort(400, "; ".join(str(problem["msg"]) for problem in error.errors()))
        counted = browser.count(view)
        kept, rejected = browser.pairs(view, counted) if with_pairs else ([], [])
        return {
            "browser": browser,
            "view": view,
            "counted": counted,
            "overall": browser.count(view, everything=True) if view.sources or view.text else None,
            "outlines": browser.outlines(view, counted),
            "section": section_text(parameters),
            "with_pairs": with_pairs,
            "sides": {"kept": kept, "rejected": rejected, "wrong": browser.wrong_pairs(counted)}
            if with_pairs
            else {},
        }

    @app.context_processor
    def _common() -> dict[str, Any]:
        return {
            "corpus": g.browser.manifest.name if "browser" in g else "",
            "labels": LABELS,
            "descriptions": {one["name"]: one["description"] for one in describe_columns(COLUMNS.values())},
            "number": number_text,
            "handle_step": handle_step,
            "random": RANDOM,
            "longest": LONGEST_TEXT,
            "query": request.query_string.decode(),
        }

    @app.get("/")
    def page() -> Page:
        return render_template("browse.html", **found())

    @app.get("/counts")
    def counts() -> Page:
        return render_template("browse.html", **found(with_pairs=False))

    @app.get("/chosen.yaml")
    def chosen() -> Response:
        return _file(f"# @package _global_\n{found(with_pairs=False)['section']}", "chosen.yaml")

    @app.get("/pairs.csv")
    def shown_pairs() -> Response:
        shown = found()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        labels = [LABELS[name] for name in shown["browser"].scales]
        writer.writerow(["shown as", "where", "reason", "reference", "translation", *labels])
        for side, pairs in shown["sides"].items():
            for pair in pairs:
                scores = dict(pair.scores)
                texts = ["".join(piece for piece, _ in one) for one in (pair.reference, pair.translation)]
                cells = [side, pair.where, pair.reason, *texts]
                writer.writerow([*cells, *(scores.get(label, "") for label in labels)])
        return _file(text.getvalue(), "pairs.csv")

    return app


def _file(text: str, name: str) -> Response:
    """Make an answer that a browser saves under a name."""
    headers = {"Content-Disposition": f"attachment; filename={name}"}
    return Response(text, mimetype="text/plain", headers=headers)
