"""Annotation pages: what is shown, saved, and refused; orders of annotators; and the server process."""

import html
import re
import socket
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from paraforge.base.errors import InputError
from paraforge.interface.annotation.results import QUESTIONS
from paraforge.interface.annotation.server import create_app, presentation_order
from paraforge.interface.annotation.store import AnnotationStore, Answer, create_store, open_evaluation
from paraforge.interface.web.serving import serve_app
from tests.corpus.selection.published import publish_pairs
from tests.interface.annotation.evaluations import NASTY, ServerProcess, small_draw
from tests.page_server import PATIENCE

pytest.importorskip("flask")
pytest.importorskip("waitress")


BANDS = [pair.band for pair in small_draw().pairs]
ORDER = [index + 1 for index in presentation_order(BANDS, 1, "Anna")]


@pytest.fixture
def store(tmp_path: Path) -> AnnotationStore:
    return create_store(tmp_path / "annotations.sqlite", small_draw())


class Annotating:
    """Anna's browser."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client
        assert self.post("/annotators", name="Anna").headers["Location"] == "/annotators/1/next"

    def post(self, path: str, **fields: str) -> TestResponse:
        """Send a form."""
        return self.client.post(path, data=fields)

    def grade(self, place: int, paraphrase: str = "", fluency: str = "", **more: str) -> TestResponse:
        """Send the grades of the pair at a place."""
        fields = {"paraphrase": paraphrase, "fluency": fluency, **more}
        given = {key: text for key, text in fields.items() if text}
        return self.post(f"/annotators/1/pairs/{place}", **given)


@pytest.fixture
def anna(store: AnnotationStore) -> Annotating:
    return Annotating(create_app(store, "127.0.0.1").test_client())


def place_after(anna: Annotating, place: int) -> str:
    """The page of the pair that follows a place."""
    return anna.client.get(f"/annotators/1/next?after={place}").headers["Location"].rpartition("/")[2]


def test_annotation_session(anna: Annotating, store: AnnotationStore) -> None:
    for place in range(1, 9):
        assert anna.client.get("/annotators/1/next").headers["Location"].endswith(f"/pairs/{place}")
        page = anna.client.get(f"/annotators/1/pairs/{place}").text
        assert f"Reference {ORDER[place - 1] - 1}." in page
        assert f"<title>Pair {place} of 8" in page and "pairs are graded" not in page
        assert anna.grade(place, "3", "2").json == {"graded": place}
    page = anna.client.get("/annotators/1/pairs/8").text
    assert "All 8 pairs are graded" in page and "8 of 8" in page
    assert [place_after(anna, place) for place in (0, 3, 8)] == ["1", "4", "8"]
    assert store.answers(1) == {pair: Answer(3, 2) for pair in range(1, 9)}


def test_annotation_texts_are_escaped(anna: Annotating) -> None:
    anna.post("/annotators", name="<script>x</script>")
    anna.grade(1, "1", "1", comment="</textarea><script>y</script>")
    for path in ("/", "/annotators/1/pairs/1", "/annotators/2/pairs/1"):
        page = anna.client.get(path).text
        ours = '<script src="/static/annotate.js" defer>'
        assert re.findall(r"<script[^>]*>", page) == [ours] * page.count(ours)
        assert "<b>" not in page and "A <corpus>" not in page
    shown = anna.client.get("/annotators/1/pairs/1").text
    assert "&lt;script&gt;document.title" in shown and "&lt;/textarea&gt;" in shown
    assert NASTY not in shown


def test_page_shows_guidelines_but_no_scores(anna: Annotating) -> None:
    page = anna.client.get("/annotators/1/pairs/1").text
    assert not [one for one in ("paraphrase_score", "tatoeba", "0.25") if one in page]
    of_input = re.findall(r'name="(\w+)" value="(\d)"[^>]* aria-describedby="meaning-(\w+)-(\d)"', page)
    assert of_input == [(name, grade, name, grade) for name in QUESTIONS for grade in "123"]
    explained = re.findall(r'id="meaning-(\w+)-(\d)">\w[^<]{20,}', page)
    assert sorted(explained) == sorted((name, grade) for name, grade, _, _ in of_input)


def test_saved_answer_is_shown_and_changeable(anna: Annotating, store: AnnotationStore) -> None:
    anna.grade(2, "1", "3", comment="first thought")
    page = anna.client.get("/annotators/1/pairs/2").text
    checked = re.findall(r'name="(\w+)" value="(\d)"[^>]* checked', page)
    assert checked == [("paraphrase", "1"), ("fluency", "3")]
    assert "first thought</textarea>" in page
    longest = "x" * 1_998
    assert anna.grade(2, "2", "3", comment=f" a\r\n{longest} ").status_code == 200
    assert store.answers(1) == {ORDER[1]: Answer(2, 3, f"a\n{longest}")}


def test_stale_page_changes_only_its_answer(anna: Annotating, store: AnnotationStore) -> None:
    anna.grade(2, "1", "3", comment="of another tab")
    anna.grade(2, "2")
    assert store.answers(1) == {ORDER[1]: Answer(2, 3, "of another tab")}


def test_page_of_other_session_changes_nothing(anna: Annotating, store: AnnotationStore) -> None:
    page = anna.client.get("/annotators/1/pairs/1").text
    (work,) = {*re.findall(r'name="work" value="(.*?)"', page)}
    assert page.count(work) == 2  # grades, and undo
    assert anna.grade(1, "1", "1", work=work).status_code == 200
    for other in (f"{work} B.", f"0{work}"):
        assert anna.grade(1, "3", "3", work=other).status_code == 409
        assert anna.post("/annotators/1/undo", work=other).status_code == 409
    # The server runs on, with another file in the place of its own.
    store.path.unlink()
    store = create_store(store.path, small_draw((4, 4, 1, 0, 2, 3, 1, 1)))
    store.join("Anna")
    reply = anna.grade(1, "3", "3", work=work)
    assert reply.status_code == 503 and "now contains another evaluation" in html.unescape(reply.text)
    assert store.answers(1) == {}


def test_graded_pairs_are_passed_and_skipped_ones_return(anna: Annotating) -> None:
    anna.grade(2, "1", "1")
    anna.grade(1, "1")  # half an answer is not one
    assert [place_after(anna, place) for place in (0, 1, 3, 8, 99, -7)] == ["1", "3", "4", "1", "1", "1"]
    for place in range(3, 9):
        anna.grade(place, "1", "1")
    assert place_after(anna, 1) == place_after(anna, 5) == "1"


def test_undo_shows_pair_again(anna: Annotating, store: AnnotationStore) -> None:
    anna.grade(1, "1", "1")
    anna.grade(2, "2", "2")
    assert anna.post("/annotators/1/undo").headers["Location"].endswith("/pairs/2")
    assert anna.post("/annotators/1/undo").headers["Location"].endswith("/pairs/1")
    assert anna.post("/annotators/1/undo").headers["Location"].endswith("/pairs/1")
    assert not any(answer.complete for answer in store.answers(1).values())


def test_invalid_requests_are_refused(anna: Annotating, store: AnnotationStore) -> None:
    for fields, status in (
        ({"paraphrase": "4", "fluency": "1"}, 400),
        ({"paraphrase": "1", "fluency": "x"}, 400),
        ({"paraphrase": "1", "fluency": "1", "comment": "x" * 2_001}, 400),
        ({"paraphrase": "1", "fluency": "1", "comment": "x" * 100_000}, 413),
    ):
        assert anna.grade(1, **fields).status_code == status
    for path in ("/annotators/2/next", "/annotators/1/pairs/0", "/annotators/1/pairs/9", "/nothing"):
        assert anna.client.get(path).status_code == 404
    assert [anna.grade(place, "1", "1").status_code for place in (0, 9)] == [404, 404]
    assert [anna.post(f"/annotators/{number}/undo").status_code for number in (2, 10**30)] == [404, 404]
    reply = anna.post("/annotators", name="   ")
    assert reply.status_code == 422 and "Enter a name" in reply.text
    assert store.answers(1) == {}


def test_unwritable_database_is_reported(anna: Annotating, store: AnnotationStore) -> None:
    store.path.rename(store.path.with_suffix(".moved"))
    reply = anna.grade(1, "3", "3")
    assert reply.status_code == 503 and "Not saved" in reply.text
    assert not store.path.exists()
    # A name in its schema, which SQLite quotes, is not UTF-8 any more.
    damaged = store.path.with_suffix(".moved").read_bytes()
    store.path.write_bytes(damaged.replace(b"CREATE TABLE answers", b"CREATE TABL\xa6 answers"))
    reply = anna.client.get("/")
    assert reply.status_code == 503 and "The evaluation cannot be read" in reply.text


@pytest.mark.full
def test_unsavable_grade_gets_quick_error(anna: Annotating, store: AnnotationStore) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        reply = anna.grade(1, "3", "2")
        # Of 3 seconds; a browser's user takes 20 for a failure, and eight of them stop all pages.
        assert time.monotonic() - started < 10
        assert reply.status_code == 503 and "Another program is writing to the evaluation" in reply.text
        assert "Pair 1 of 8" in anna.client.get("/annotators/1/pairs/1").text
        other.execute("ROLLBACK")
    assert anna.grade(1, "3", "2").status_code == 200
    assert len(store.judgments()) == 1


@pytest.mark.parametrize("path", ["/", "/annotators/1/pairs/1"])
def test_fields_have_labels_and_no_remote_assets(anna: Annotating, path: str) -> None:
    page = anna.client.get(path).text
    labeled = set(re.findall(r'<label for="([^"]+)"', page))
    outside = re.sub(r"<label\b.*?</label>", "", page, flags=re.S)
    fields = re.findall(r"<(?:input(?! type=.hidden)|textarea|progress)\b[^>]*>", outside)
    assert len(fields) == 2
    for field in fields:
        assert " aria-label=" in field or re.search(r' id="([^"]+)"', field)[1] in labeled, field
    addresses = re.findall(r'\b(?:src|href|action)="([^"]*)"', page)
    assert addresses and all(re.match(r"#|/(?!/)", address) for address in addresses)


def test_assets_exist_and_name_no_host(anna: Annotating) -> None:
    for address in ("static/annotate.js", "static/annotate.css", "static/pages.css", "static/icon.svg"):
        reply = anna.client.get(f"/{address}")
        assert reply.status_code == 200
        assert set(re.findall(r"https?://[^\s\"']+", reply.text)) <= {"http://www.w3.org/2000/svg"}


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 9), st.text(max_size=5))
def test_drawn_prefixes_are_stratified(bands: list[int], seed: int, name: str) -> None:
    order = presentation_order(bands, seed, name)
    assert sorted(order) == list(range(len(bands)))
    for length in range(len(order) + 1):
        for band in set(bands):
            seen = sum(bands[index] == band for index in order[:length])
            assert abs(seen - bands.count(band) * length / len(bands)) < 5


def test_small_band_is_spread_over_large_one() -> None:
    bands = [0, 1, 1, 1, 1]
    assert [bands[index] for index in presentation_order(bands, 1, "Anna")] == [1, 1, 0, 1, 1]


def test_annotator_orders_differ_and_hide_bands() -> None:
    bands = [0, 1, 2, 3, 4] * 20
    anna = presentation_order(bands, 1, "Anna")
    assert anna == presentation_order(bands, 1, "Anna")
    assert anna not in (presentation_order(bands, 1, "Boris"), presentation_order(bands, 2, "Anna"))
    rounds = {tuple(bands[index] for index in anna[start : start + 5]) for start in range(0, 100, 5)}
    assert all(sorted(one) == [0, 1, 2, 3, 4] for one in rounds) and len(rounds) > 10


def post(address: str, **fields: str | int) -> None:
    """Send a form as a browser without scripts does."""
    urlopen(Request(address, urlencode(fields).encode()), timeout=PATIENCE).close()


@pytest.mark.full
def test_killed_server_loses_no_grade(tmp_path: Path) -> None:
    """Confirmed grades survive SIGKILL, and open pages continue at the same address."""
    path = tmp_path / "annotations.sqlite"
    create_store(path, small_draw([number % 5 for number in range(200)]))
    with ServerProcess(path) as server:
        post(f"{server.address}annotators", name="Anna")
        for place in range(1, 31):
            post(f"{server.address}annotators/1/pairs/{place}", paraphrase=place % 3 + 1, fluency=2)
        server.kill()
    confirmed = Counter(answer.paraphrase for answer in AnnotationStore(path).answers(1).values())
    assert confirmed == {1: 10, 2: 10, 3: 10}
    with ServerProcess(path, server.port) as server:
        post(f"{server.address}annotators/1/pairs/31", paraphrase=3, fluency=3)
        assert server.terminate() == 130
    assert AnnotationStore(path).annotators()[0].graded == 31
    assert "31 answers" in "".join(server.errors)


def test_occupied_port_is_error(tmp_path: Path) -> None:
    store = create_store(tmp_path / "annotations.sqlite", small_draw())
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}.*--port 0 chooses a free one"):
            serve_app(partial(create_app, store), "127.0.0.1", port)


def test_ipv6_address_is_shown_in_brackets(tmp_path: Path) -> None:
    store = create_store(tmp_path / "annotations.sqlite", small_draw())
    with pytest.raises((SystemExit, InputError), match=r"http://\[::1\]:\d+/|cannot listen on ::1"):
        serve_app(partial(create_app, store), "[::1]", 0, sys.exit)


def test_second_serve_continues_same_draw(tmp_path: Path) -> None:
    corpus, database = tmp_path / "corpus", tmp_path / "annotations.sqlite"
    with pytest.raises(InputError, match="Use a corpus"):
        open_evaluation(None, database, None, None, None)
    publish_pairs(tmp_path, rows=200)
    first, new = open_evaluation(corpus, database, 5, 3, None)
    assert new
    for named in (corpus, None):
        again, new = open_evaluation(named, database, None, None, None)
        assert not new and again.draw == first.draw
    for other in ((6, None, None), (None, 4, None), (None, None, False)):
        with pytest.raises(InputError, match="5 from each band with seed 3"):
            open_evaluation(corpus, database, *other)
    publish_pairs(tmp_path / "other", rows=100)
    with pytest.raises(InputError, match="drawn from a different corpus"):
        open_evaluation(tmp_path / "other" / "corpus", database, None, None, None)
    kept = tmp_path / "kept.sqlite"
    without, _ = open_evaluation(corpus, kept, None, 0, False)
    assert (without.draw.manifests.keys(), without.draw.seed, without.draw.per_band) == ({"corpus"}, 0, 100)
    assert open_evaluation(corpus, kept, None, None, None)[0].draw == without.draw
