"""The web pages of ``paraforge browse``; every one works as a plain form, without scripts."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from flask import Flask, Response, abort, render_template, request
from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.publication.manifest import describe_columns
from paraforge.interface.browse.browser import Browser, Counted
from paraforge.interface.browse.histogram import handle_step
from paraforge.interface.browse.rules import parameters_of, section_text
from paraforge.interface.browse.view import LONGEST_TEXT, RANDOM, View, from_fields, number_text, to_fields
from paraforge.interface.web.security import HostPolicy, Page, make_app, same_origin


def create_app(browser: Browser, policy: HostPolicy, refresh: Callable[[], None] | None = None) -> Flask:
    """Make the application of one corpus.

    refresh: called before each request, looks whether the corpus is another one by now.
    """
    app = make_app(__name__, policy)

    @app.before_request
    def _as_it_is_now() -> None:
        if refresh is not None:
            try:
                refresh()
            except InputError as error:
                abort(503, f"{error.message}. Reload this page when 'dvc repro' has finished.")

    def view_of_request() -> View:
        # A page from elsewhere could otherwise keep this machine busy, though it could not read the answers.
        if not same_origin(request) and request.headers.get("Sec-Fetch-Dest") != "document":
            abort(403, "This address was not asked for by a page of this server.")
        try:
            return from_fields(request.args, browser.default, browser.sources)
        except InputError as error:
            abort(400, f"{error}.")

    def counted(view: View) -> dict[str, Any]:
        try:
            found = browser.count(view)
            parameters = parameters_of(view, browser.base)
        except ValidationError as error:
            abort(400, "; ".join(str(problem["msg"]) for problem in error.errors()))
        everything = view.everything
        return {
            "view": view,
            "counted": found,
            "overall": browser.count(everything) if view.is_narrowed else None,
            "histograms": browser.histograms(view, found),
            "section": section_text(parameters),
            "rejected_label": _label_of_reason(view.reason, found.words),
        }

    @app.context_processor
    def _common() -> dict[str, Any]:
        return {
            "browser": browser,
            "corpus": browser.manifest.name,
            "labels": LABELS,
            "descriptions": {one["name"]: one["description"] for one in describe_columns(COLUMNS.values())},
            "number": number_text,
            "handle_step": handle_step,
            "integers": browser.integers,
            "random": RANDOM,
            "longest": LONGEST_TEXT,
            "address": lambda view, **changes: _address(browser, view, changes),
            "file": lambda view, name: _address(browser, view, {}, f"/{name}"),
        }

    def with_pairs(view: View, found: Counted) -> dict[str, Any]:
        kept, refused = browser.pairs(view, found)
        return {
            "view": view,
            "counted": found,
            "kept": kept,
            "refused": refused,
            "wrong": browser.wrong_pairs(found),
            "rejected_label": _label_of_reason(view.reason, found.words),
        }

    @app.get("/")
    def page() -> Page:
        view = view_of_request()
        known = counted(view)
        return render_template("browse.html", **known | with_pairs(view, known["counted"]))

    @app.get("/counts")
    def counts() -> Page:
        return render_template("counts.html", **counted(view_of_request()))

    @app.get("/pairs")
    def pairs() -> Page:
        view = view_of_request()
        return render_template("pairs.html", **with_pairs(view, browser.count(view)))

    @app.get("/chosen.yaml")
    def chosen() -> Response:
        text = f"# @package _global_\n{counted(view_of_request())['section']}"
        return _file(text, "chosen.yaml", "application/yaml")

    @app.get("/pairs.csv")
    def shown_pairs() -> Response:
        view = view_of_request()
        shown = with_pairs(view, browser.count(view))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        labels = [LABELS[name] for name in browser.scales]
        writer.writerow(["shown as", "where", "reason", "reference", "translation", *labels])
        for side in ("kept", "refused", "wrong"):
            for pair in shown[side]:
                scores = dict(pair.scores)
                texts = ["".join(piece for piece, _ in side) for side in (pair.reference, pair.translation)]
                cells = [side, pair.where, pair.reason, *texts]
                writer.writerow([*cells, *(scores.get(label, "") for label in labels)])
        return _file(text.getvalue(), "pairs.csv", "text/csv")

    return app


def _file(text: str, name: str, kind: str) -> Response:
    """An answer that a browser saves under a name."""
    headers = {"Content-Disposition": f"attachment; filename={name}"}
    return Response(text, mimetype=kind, headers=headers)


def _label_of_reason(reason: str, words: dict[str, str]) -> str:
    return words.get(reason, reason.replace("_", " "))


def _address(browser: Browser, view: View, changes: dict[str, Any], path: str = "/") -> str:
    """The address of a view with some things changed."""
    fields = urlencode(to_fields(replace(view, **changes), browser.default))
    return f"{path}?{fields}" if fields else path
