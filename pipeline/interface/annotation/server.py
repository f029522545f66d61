"""The web pages on which annotators grade pairs."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import Flask, abort, jsonify, redirect, render_template, request, url_for

from paraforge.base.errors import InputError
from paraforge.interface.annotation.results import QUESTIONS
from paraforge.interface.annotation.store import (
    LONGEST_COMMENT,
    LONGEST_NAME,
    AnnotationStore,
    Annotator,
    Answer,
)
from paraforge.interface.web.serving import make_app, problem_page

if TYPE_CHECKING:
    from paraforge.interface.web.serving import Page

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Session:
    """One annotator's work.

    work: identifies the annotator and the evaluation, so that a page of another one cannot save here.
    order: pair at each place, places counted from 1 in the addresses. answers: by pair.
    """

    annotator: Annotator
    work: str
    order: list[int]
    answers: dict[int, Answer]

    def answer_at(self, place: int) -> Answer:
        """Return the answer to the pair at a place. Raises NotFound if there is no such place."""
        if not 1 <= place <= len(self.order):
            abort(404, "There is no such pair.")
        return self.answers.get(self.order[place - 1], Answer())

    def next_place(self, after: int = 0) -> int:
        """Find the next place without a complete answer, first after a place and then from the beginning; if
        all are complete, return the following place."""
        places = range(1, len(self.order) + 1)
        incomplete = (place for place in [*places[after:], *places] if not self.answer_at(place).complete)
        return next(incomplete, min(after + 1, len(places)))


def create_app(store: AnnotationStore, bind: str) -> Flask:
    """Make the application of one database. bind: the address that the server listens on."""
    app = make_app("annotate", bind)
    pairs = store.draw.pairs
    evaluation = hashlib.blake2b(repr(store.draw).encode(), digest_size=16).hexdigest()
    app.jinja_env.globals |= {
        "total": len(pairs),
        "corpus": store.draw.name,
        "longest_name": LONGEST_NAME,
        "longest_comment": LONGEST_COMMENT,
    }

    def session_of(number: int) -> Session:
        annotator = next((known for known in store.annotators() if known.number == number), None)
        if annotator is None:
            abort(404, "There is no such annotator.")
        work = f"{evaluation} {annotator.name}"
        # In another evaluation, the same address can be another pair or person.
        if request.form.get("work", work) != work:
            abort(409, "That page belongs to another evaluation.")
        order = presentation_order([pair.band for pair in pairs], store.draw.seed, annotator.name)
        return Session(annotator, work, [index + 1 for index in order], store.answers(number))

    @app.get("/")
    def people() -> Page:
        return render_template("people.html", annotators=store.annotators())

    @app.post("/annotators")
    def join() -> Page:
        try:
            annotator = store.join(request.form.get("name", ""))
        except InputError as error:
            return render_template("people.html", annotators=store.annotators(), problem=str(error)), 422
        return redirect(url_for("go_on", number=annotator.number), 303)

    @app.get("/annotators/<int:number>/next")
    def go_on(number: int) -> Page:
        after = max(0, request.args.get("after", 0, int))
        return redirect(url_for("grade", number=number, place=session_of(number).next_place(after)), 303)

    @app.get("/annotators/<int:number>/pairs/<int:place>")
    def grade(number: int, place: int) -> Page:
        session = session_of(number)
        return render_template(
            "grade.html",
            annotator=session.annotator,
            work=session.work,
            place=place,
            answer=session.answer_at(place),
            pair=pairs[session.order[place - 1] - 1],
            finished=session.annotator.graded == len(pairs),
        )

    @app.post("/annotators/<int:number>/pairs/<int:place>")
    def save(number: int, place: int) -> Page:
        session = session_of(number)
        session.answer_at(place)
        store.record(number, session.order[place - 1], _answer_of_form())
        return jsonify(graded=session_of(number).annotator.graded)

    @app.post("/annotators/<int:number>/undo")
    def undo(number: int) -> Page:
        session = session_of(number)
        pair = store.undo(number)
        place = session.order.index(pair) + 1 if pair else session.next_place()
        return redirect(url_for("grade", number=number, place=place), 303)

    @app.errorhandler(sqlite3.Error)
    @app.errorhandler(UnicodeDecodeError)  # SQLite quotes what is damaged
    def not_answered(error: Exception) -> Page:
        logger.error("%s: %s", store.path, error)
        locked = "locked" in str(error)
        reason = "Another program is writing to the evaluation" if locked else f"The database says: {error}"
        title = "Not saved" if request.method == "POST" else "The evaluation cannot be read"
        return problem_page(title, f"{reason}."), 503

    return app


def _answer_of_form() -> Answer:
    grades = [request.form.get(question, "") for question in QUESTIONS]
    if not {*grades} <= {"", "1", "2", "3"}:
        abort(400, "A grade is 1, 2 or 3.")
    comment = request.form.get("comment")
    if comment is not None:
        comment = comment.replace("\r\n", "\n").strip()
    if len(comment or "") > LONGEST_COMMENT:
        abort(400, f"A comment has at most {LONGEST_COMMENT:,} characters.")
    paraphrase, fluency = (int(grade) if grade else None for grade in grades)
    return Answer(paraphrase, fluency, comment)


def presentation_order(bands: Sequence[int], seed: int, annotator: str) -> list[int]:
    """Return indices of the pairs in the order in which an annotator grades them.

    Depends only on the seed and the name, so it survives a restart and differs between annotators. Someone
    who stops early has graded the same share of every band, to within one pair.

    bands: band of each pair. annotator: name.
    """

    def key(index: int) -> bytes:
        return hashlib.blake2b(f"{seed}\0{annotator}\0{index}".encode(), digest_size=16).digest()

    strata: dict[int, list[int]] = defaultdict(list)
    for index, band in enumerate(bands):
        strata[band].append(index)
    places = {}
    for members in strata.values():
        for place, index in enumerate(sorted(members, key=key)):
            places[index] = (place + 0.5) / len(members)
    return sorted(range(len(bands)), key=lambda index: (places[index], key(index)))
