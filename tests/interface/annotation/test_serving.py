"""The server as a process: killed it has lost nothing; what it says when it cannot start."""

import socket
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("flask")
pytest.importorskip("waitress")

from paraforge.base.errors import InputError
from paraforge.interface.annotation.server import create_app
from paraforge.interface.annotation.store import AnnotationStore, create_store, open_evaluation
from paraforge.interface.web.serving import serve_app
from tests.corpus.selection.published import publish_pairs
from tests.interface.annotation.evaluations import ServerProcess, small_draw
from tests.page_server import PATIENCE


def post(address: str, **fields: str | int) -> None:
    """Send a form as a browser without scripts does."""
    urlopen(Request(address, urlencode(fields).encode()), timeout=PATIENCE).close()


@pytest.mark.full
def test_killed_it_has_lost_nothing_and_a_signal_is_code_130(tmp_path: Path) -> None:
    """What was confirmed is there after SIGKILL, and the same pages continue at the same address."""
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


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    store = create_store(tmp_path / "annotations.sqlite", small_draw())
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port}.*--port 0 takes a free one"):
            serve_app(partial(create_app, store), "127.0.0.1", port)


def test_an_address_in_brackets_is_shown_in_them_once(tmp_path: Path) -> None:
    store = create_store(tmp_path / "annotations.sqlite", small_draw())
    with pytest.raises((SystemExit, InputError), match=r"http://\[::1\]:\d+/|cannot listen on ::1"):
        serve_app(partial(create_app, store), "[::1]", 0, sys.exit)


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
    with pytest.raises(InputError, match="drawn from a different corpus"):
        open_evaluation(tmp_path / "other" / "corpus", database, None, None, None)
