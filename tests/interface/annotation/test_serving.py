"""The server as a process: killed at any moment it has lost nothing; what it says when it cannot start. Who
is answered: Host, Origin; and what a browser is told to refuse."""

import re
import socket
import threading
import time
from collections import Counter
from functools import partial
from http.client import HTTPException
from pathlib import Path

import pytest

pytest.importorskip("flask")
pytest.importorskip("waitress")

from flask.testing import FlaskClient

from paraforge.base.errors import InputError
from paraforge.interface.annotation.server import create_app
from paraforge.interface.annotation.store import AnnotationStore, Answer, create_store, open_evaluation
from paraforge.interface.web.serving import is_known, is_loopback, known_names, serve_app
from tests.corpus.selection.published import publish_pairs
from tests.interface.annotation.evaluations import PlainBrowser, ServerProcess, small_draw


@pytest.mark.full
def test_killed_in_mid_session(tmp_path: Path) -> None:
    """Answers as fast as they go, then SIGKILL: all that was confirmed is there, and work continues."""
    path = tmp_path / "annotations.sqlite"
    create_store(path, small_draw([number % 5 for number in range(200)]))
    confirmed: list[tuple[str, int, int]] = []
    with ServerProcess(path) as server:
        browser = PlainBrowser()
        browser.get(server.address)
        browser.post(f"{server.address}annotators", name="Anna")
        assert browser.url.endswith("/annotators/1/pairs/1")

        def work() -> None:
            try:
                for number in range(10_000):
                    here = browser.url
                    grades = number % 3 + 1, number // 3 % 3 + 1
                    browser.post(here, paraphrase=grades[0], fluency=grades[1], comment="ž")
                    confirmed.append((here.rsplit("/", 1)[1], *grades))
                    browser.get(f"{server.address}annotators/1/next")
            except (OSError, HTTPException):
                pass

        worker = threading.Thread(target=work)
        worker.start()
        deadline = time.monotonic() + 60
        while len(confirmed) < 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        server.kill()
        worker.join(30)
        port = server.port
    assert len(confirmed) >= 10
    store = AnnotationStore(path)
    by_place = {int(place): Answer(p, f, "ž") for place, p, f in confirmed}
    with ServerProcess(path, port) as server:
        # The same browser continues with the page that it had.
        page = browser.get(f"{server.address}annotators/1/next")
        place = int(browser.url.rsplit("/", 1)[1])
        # One more may have been saved without its confirmation getting through.
        assert place - 1 in (len(confirmed), len(confirmed) + 1)
        shown = [
            re.findall(
                r'value="(\d)"[^>]* checked', browser.get(f"{server.address}annotators/1/pairs/{number}")
            )
            for number in list(by_place)[-3:]
        ]
        assert shown == [[str(by_place[n].paraphrase), str(by_place[n].fluency)] for n in list(by_place)[-3:]]
        assert f"Pair {place}" in page
        browser.get(f"{server.address}annotators/1/pairs/{place}")
        browser.post(f"{server.address}annotators/1/pairs/{place}", paraphrase=3, fluency=3)
        assert server.terminate() == 0
    assert not Counter(by_place.values()) - Counter(store.answers(1).values())
    assert store.annotators()[0].graded == place
    assert f"{place} answers" in "".join(server.errors)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    store = create_store(tmp_path / "annotations.sqlite", small_draw())
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}.*--port 0 takes a free one"):
            serve_app(partial(create_app, store), "127.0.0.1", port)


def test_the_second_call_continues_with_the_same_draw(tmp_path: Path) -> None:
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
    with pytest.raises(InputError, match="drawn from another corpus"):
        open_evaluation(tmp_path / "other" / "corpus", database, None, None, None)


@pytest.fixture
def store(tmp_path: Path) -> AnnotationStore:
    return create_store(tmp_path / "annotations.sqlite", small_draw())


@pytest.fixture
def client(store: AnnotationStore) -> FlaskClient:
    return create_app(store, "127.0.0.1").test_client()


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
def test_hosts_are_addresses_and_known_names(bind: str) -> None:
    """Addresses cannot be rebound, names can."""
    names = known_names(bind)
    known = "localhost LOCALHOST:8377 127.0.0.1:8377 127.8.9.1 [::1]:8377 localhost.:9000"
    more = [socket.gethostname(), "192.168.1.7:8377", "[fe80::1]:80"]
    assert all(is_known(one, names) for one in [*known.split(), *more])
    others = (
        "evil.example localhost.evil.example 127.0.0.1.evil.example evil@localhost localhost@evil.example"
    )
    assert not any(is_known(one, names) for one in [*others.split(), "", "[::1"])


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "box")))


def test_a_rebound_name_gets_nothing(client: FlaskClient) -> None:
    for address in ("/", "/static/annotate.js"):
        reply = client.get(address, headers={"Host": "evil.example"})
        assert reply.status_code == 421 and "IP address" in reply.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"Origin": "http://localhost"}, 303),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:9999"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        # As browsers send a form of another page.
        ({"Origin": "http://evil.example", "Sec-Fetch-Dest": "document"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}, 403),
    ],
)
def test_posts_come_from_own_pages(
    client: FlaskClient, store: AnnotationStore, headers: dict[str, str], status: int
) -> None:
    reply = client.post("/annotators", data={"name": "Anna"}, headers=headers)
    assert reply.status_code == status
    assert len(store.annotators()) == (status == 303)


def test_headers(client: FlaskClient) -> None:
    reply = client.get("/")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in reply.headers
