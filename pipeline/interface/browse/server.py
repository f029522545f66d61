"""The page of ``paraforge browse``, and what its script asks for."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, abort, render_template, request
from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.corpus.columns import COLUMNS, LABELS
from paraforge.corpus.publication.manifest import describe_columns
from paraforge.interface.browse.browser import Browser
from paraforge.interface.browse.histogram import handle_step, inside, outline
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
    app.jinja_env.globals |= {
        "labels": LABELS,
        "descriptions": {one["name"]: one["description"] for one in describe_columns(COLUMNS.values())},
        "number": number_text,
        "handle_step": handle_step,
        "inside": inside,
        "outline": outline,
        "random": RANDOM,
        "longest": LONGEST_TEXT,
    }

    @app.errorhandler(InputError)
    def _replaced(error: InputError) -> Page:
        words = f"{error.message}. Reload this page when 'dvc repro' has finished."
        return problem_page("The corpus cannot be read", words), 503

    def found(with_pairs: bool = True) -> dict[str, Any]:
        # Another site could otherwise keep this machine busy, though it could not read the answers.
        if not same_origin(request) and request.headers.get("Sec-Fetch-Dest") != "document":
            abort(403, "This address was not asked for by a page of this server.")
        browser = current()
        try:
            view = view_of(request.args, browser.default, browser.corpus.sources)
            parameters = parameters_of(view, browser.base)
        except InputError as error:
            abort(400, f"{error}.")
        except ValidationError as error:
            abort(400, "; ".join(str(problem["msg"]) for problem in error.errors()))
        counted = browser.count(parameters, view.sources, view.text)
        return {
            "corpus": browser.manifest.name,
            "browser": browser,
            "view": view,
            "counted": counted,
            "overall": browser.count(parameters) if view.sources or view.text else None,
            "section": section_text(parameters),
            "sides": browser.pairs(view, counted) if with_pairs else None,
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
        return _file(found(with_pairs=False)["section"], "chosen.yaml")

    @app.get("/pairs.csv")
    def shown_pairs() -> Response:
        shown = found()
        text = io.StringIO()
        labels = [LABELS[name] for name in shown["browser"].scales]
        fields = ["shown as", "where", "reason", "reference", "translation", *labels]
        writer = csv.DictWriter(text, fields, lineterminator="\n")
        writer.writeheader()
        for side, pairs in shown["sides"].items():
            for pair in pairs:
                texts = ["".join(piece for piece, _ in one) for one in (pair.reference, pair.translation)]
                cells = [side, pair.where, pair.reason, *texts]
                writer.writerow(dict(zip(fields, cells, strict=False)) | dict(pair.scores))
        return _file(text.getvalue(), "pairs.csv")

    return app


def _file(text: str, name: str) -> Response:
    """Make an answer that a browser saves under a name."""
    headers = {"Content-Disposition": f"attachment; filename={name}"}
    return Response(text, mimetype="text/plain", headers=headers)
