"""The web pages on which annotators grade pairs."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flask import Flask, abort, jsonify, redirect, render_template, request, url_for

from paraforge.base.errors import InputError
from paraforge.interface.annotation.store import (
    LONGEST_COMMENT,
    LONGEST_NAME,
    AnnotationStore,
    Annotator,
    Answer,
)
from paraforge.interface.web.serving import HostPolicy, make_app, problem_page

if TYPE_CHECKING:
    from paraforge.interface.web.serving import Page

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Session:
    """One annotator's work.

    order: pair at each place, places counted from 1 in the addresses. answers: by pair.
    """

    annotator: Annotator
    order: list[int]
    answers: dict[int, Answer]

    def pair_at(self, place: int) -> int:
        """The pair at a place; 404 where there is none."""
        if not 1 <= place <= len(self.order):
            abort(404, "There is no such pair.")
        return self.order[place - 1]

    @property
    def next_place(self) -> int | None:
        """The first place without a complete answer."""
        return self._open_place(range(1, len(self.order) + 1))

    def next_after(self, place: int) -> int | None:
        """The first such place after ``place``, or else the first one at all."""
        return self._open_place(range(place + 1, len(self.order) + 1)) or self.next_place

    def _open_place(self, places: range) -> int | None:
        return next(
            (place for place in places if not self.answers.get(self.order[place - 1], Answer()).complete),
            None,
        )


def create_app(store: AnnotationStore, policy: HostPolicy) -> Flask:
    """The application of one database."""
    app = make_app("annotate", policy)
    bands = [pair.band for pair in store.draw.pairs]

    @lru_cache(maxsize=256)
    def order_of(name: str) -> list[int]:
        return [index + 1 for index in presentation_order(bands, store.draw.seed, name)]

    def session_of(number: int) -> Session:
        annotator = store.annotator(number)
        if annotator is None:
            abort(404, "There is no such annotator.")
        return Session(annotator, order_of(annotator.name), store.answers(number))

    @app.context_processor
    def _common() -> dict[str, Any]:
        return {
            "total": len(bands),
            "corpus": store.draw.origin.name,
            "identity": store.identity,
        }

    @app.get("/")
    def people() -> Page:
        return render_template("people.html", annotators=store.annotators(), longest=LONGEST_NAME)

    @app.post("/annotators")
    def join() -> Page:
        try:
            annotator = store.join(request.form.get("name", ""))
        except InputError as error:
            page = render_template(
                "people.html", annotators=store.annotators(), longest=LONGEST_NAME, problem=str(error)
            )
            return page, 422
        return redirect(url_for("go_on", number=annotator.number), 303)

    @app.get("/annotators/<int:number>/next")
    def go_on(number: int) -> Page:
        session = session_of(number)
        return redirect(_address(session, session.next_place), 303)

    @app.get("/annotators/<int:number>/pairs/<int:place>")
    def grade(number: int, place: int) -> Page:
        session = session_of(number)
        pair = session.pair_at(place)
        return render_template(
            "grade.html",
            annotator=session.annotator,
            place=place,
            pair=store.draw.pairs[pair - 1],
            answer=session.answers.get(pair, Answer()),
            questions=(PARAPHRASE, FLUENCY),
            longest=LONGEST_COMMENT,
            finished=session.next_place is None,
        )

    @app.post("/annotators/<int:number>/pairs/<int:place>")
    def save(number: int, place: int) -> Page:
        session = session_of(number)
        pair = session.pair_at(place)
        answer = _answer_of_form()
        store.record(number, pair, answer)
        session = session_of(number)
        action = request.form.get("action", "next")
        if action == "next" and not answer.complete:
            return app.make_response((jsonify(problem="Both grades are needed to continue."), 422))
        places = {"next": session.next_after(place), "previous": max(place - 1, 1), "draft": place}
        if action not in places:
            abort(400, "There is no such action.")
        return jsonify(address=_address(session, places[action]), graded=session.annotator.graded)

    @app.post("/annotators/<int:number>/undo")
    def undo(number: int) -> Page:
        session = session_of(number)
        pair = store.undo(number)
        place = session.next_place if pair is None else session.order.index(pair) + 1
        return redirect(_address(session, place), 303)

    @app.get("/annotators/<int:number>/answers")
    def answers(number: int) -> Page:
        session = session_of(number)
        rows = [
            (place, store.draw.pairs[pair - 1], session.answers[pair])
            for place, pair in enumerate(session.order, start=1)
            if session.answers.get(pair, Answer()) != Answer()
        ]
        return render_template("answers.html", session=session, annotator=session.annotator, rows=rows)

    @app.errorhandler(sqlite3.Error)
    def not_saved(error: sqlite3.Error) -> Page:
        logger.error("%s: %s", store.path, error)
        locked = "locked" in str(error)
        why = "Another program is writing to the evaluation" if locked else f"The database says: {error}"
        return problem_page("Not saved", f"{why}. Try again."), 503

    return app


def _address(session: Session, place: int | None) -> str:
    number = session.annotator.number
    if place is None:
        return url_for("answers", number=number)
    return url_for("grade", number=number, place=place)


def _answer_of_form() -> Answer:
    grades: list[int | None] = []
    for question in (PARAPHRASE, FLUENCY):
        value = request.form.get(question.name, "")
        if value not in ("", "1", "2", "3"):
            abort(400, "A grade is 1, 2 or 3.")
        grades.append(int(value) if value else None)
    comment = request.form.get("comment", "").replace("\r\n", "\n").strip()
    if len(comment) > LONGEST_COMMENT:
        abort(400, f"A comment has at most {LONGEST_COMMENT:,} characters.")
    return Answer(grades[0], grades[1], comment)


def presentation_order(bands: Sequence[int], seed: int, annotator: str) -> list[int]:
    """Indices of the pairs in the order in which an annotator grades them.

    Depends on the seed and the name alone, so that it is the same after a restart and another one for
    everybody. Who stops after a share of the pairs has graded that share of every band, to within one pair.

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


@dataclass(frozen=True)
class Grade:
    """One of the three answers: its short name, and what it means."""

    value: int
    label: str
    meaning: str


@dataclass(frozen=True)
class Question:
    """What is asked of a pair.

    name: of the field. title: as people read it. asked: the question in full.
    """

    name: str
    title: str
    asked: str
    grades: tuple[Grade, Grade, Grade]


PARAPHRASE = Question(
    "paraphrase",
    "Paraphrase strength",
    "Do the two sentences mean the same?",
    (
        Grade(1, "Not equivalent", "The sentences are not equivalent, even if they share minor details."),
        Grade(
            2,
            "Roughly equivalent",
            "The sentences are roughly equivalent, with some important information missing or that differs "
            "slightly.",
        ),
        Grade(
            3, "Same meaning", "The sentences have the same meaning, but some unimportant details can differ."
        ),
    ),
)
FLUENCY = Question(
    "fluency",
    "Fluency of the translation",
    "Is the back-translation, on its own, good English?",
    (
        Grade(1, "Poor", "It has more than two grammatical errors or is not a natural English sentence."),
        Grade(2, "Some errors", "It has one to two grammatical errors."),
        Grade(3, "Fluent", "It has no grammatical errors."),
    ),
)
