"""The server as a process: killed at any moment it has lost nothing; what it says when it cannot start."""

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

from paraforge.base.errors import InputError
from paraforge.interface.annotation.server import create_app
from paraforge.interface.annotation.store import AnnotationStore, Answer, create_store, open_evaluation
from paraforge.interface.web.serving import serve_app
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
        assert server.terminate() == 130
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
