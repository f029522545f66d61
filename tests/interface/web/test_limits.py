"""Connections that send half a request do not keep others out, and no header is answered by a failure."""

import io
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from flask import Flask, request
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder

from paraforge.interface.web import serving
from paraforge.interface.web.serving import LARGEST_REQUEST, HostPolicy, make_app

PROGRAM = """
import sys
from paraforge.interface.web import serving
from paraforge.interface.web.serving import make_app, serve_app
serving._CONNECTIONS, serving._SILENCE = map(int, sys.argv[1:])
def make(policy):
    app = make_app("browse", policy)
    app.get("/")(lambda: "here")
    return app
serve_app(make, "127.0.0.1", 0, announce=lambda address: print(address, flush=True))
"""
HALVES = (
    b"",
    b"GET / HTTP/1.1\r\nHost: loc",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\na",
)


@contextmanager
def served(connections: int = serving._CONNECTIONS, silence: int = serving._SILENCE) -> Iterator[str]:
    """The address of a server that has at most so many connections, and closes those that are silent for so
    many seconds."""
    command = [sys.executable, "-c", PROGRAM, str(connections), str(silence)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            assert process.wait(60) == 0


def seconds_to_answer(address: str, half_open: int) -> float:
    """How long a whole request takes next to so many halves."""
    place = address.removeprefix("http://").rstrip("/").split(":")
    with ExitStack() as connections:
        for number in range(half_open):
            connection = connections.enter_context(socket.create_connection((place[0], int(place[1])), 60))
            connection.sendall(HALVES[number % len(HALVES)])
        started = time.monotonic()
        with urllib.request.urlopen(address, timeout=90) as reply:
            assert reply.read() == b"here"
        return time.monotonic() - started


def test_hundreds_of_half_open_requests_keep_nobody_out() -> None:
    with served() as address:
        # They would be closed after 20 seconds: this is shorter even on a busy machine.
        assert seconds_to_answer(address, 150) < 15


@pytest.mark.full
def test_where_there_are_more_than_can_be_open_the_silent_ones_are_closed() -> None:
    with served(connections=40, silence=2) as address:
        assert seconds_to_answer(address, 60) < 60


@pytest.fixture(scope="module", params=["127.0.0.1", "0.0.0.0"])
def app(request: pytest.FixtureRequest) -> Flask:
    app = make_app("browse", HostPolicy(request.param, ["grading.lab"]))
    app.add_url_rule("/", "first", _answer, methods=["GET", "POST"])
    return app


def _answer() -> str:
    return f"{len(request.form)} {len(request.args)}"


HOSTS = [
    "a..b", "x" * 300, ".", "..", "[", "[::1", "]", "a b", "é", "\x00", "@", "a@b", "1.2.3.4..", "[::1%lo]",
    "-", "localhost", "localhost:99999", "localhost:x", "grading.lab", "grading.lab..", "127.0.0.1", "xn--a",
    "null", "",
]  # fmt: skip
NAMES = st.sampled_from(HOSTS)
VALUES = st.one_of(
    NAMES,
    NAMES.map(lambda name: f"http://{name}"),
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=40),
)
HEADERS = ["HOST", "ORIGIN", "SEC_FETCH_SITE", "COOKIE", "X_FORWARDED_HOST", "REFERER", "ACCEPT", "RANGE"]


@given(
    st.sampled_from(["GET", "HEAD", "POST"]),
    st.dictionaries(st.sampled_from(HEADERS), VALUES),
    st.sampled_from(["/", "/none", "//", "/%", "/pages/../x", "/\x00"]),
    st.text(st.characters(max_codepoint=255), max_size=20),
    st.sampled_from(["application/x-www-form-urlencoded", "multipart/form-data; boundary=", "a/b", "é", ""]),
)
def test_no_request_makes_a_page_fail(
    app: Flask, method: str, headers: dict[str, str], path: str, query: str, kind: str
) -> None:
    environ = EnvironBuilder(method=method).get_environ()
    body = b"token=a&x=%zz"
    environ |= {"PATH_INFO": path, "QUERY_STRING": query, "wsgi.input": io.BytesIO(body)}
    environ |= {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": kind, "HTTP_COOKIE": "paraforge_page=a"}
    environ |= {f"HTTP_{name}": value for name, value in headers.items()}
    answers: list[str] = []
    b"".join(app.wsgi_app(environ, lambda status, *_: answers.append(status)))  # type: ignore[arg-type,return-value,func-returns-value]
    assert len(answers) == 1 and int(answers[0].split()[0]) < 500, (answers, environ)


@pytest.mark.parametrize("host", HOSTS)
def test_no_host_makes_a_page_fail(app: Flask, host: str) -> None:
    environ = EnvironBuilder().get_environ() | {"HTTP_HOST": host}
    answers: list[str] = []
    b"".join(app.wsgi_app(environ, lambda status, *_: answers.append(status)))  # type: ignore[arg-type,return-value,func-returns-value]
    assert len(answers) == 1 and int(answers[0].split()[0]) < 500


@pytest.mark.parametrize("host", ["a..b", "x" * 300, "1.2.3.4..", "grading.lab.."])
def test_a_host_that_is_no_name_is_refused(app: Flask, host: str) -> None:
    reply = app.test_client().get("/", headers={"Host": host})
    assert reply.status_code == 421 and "--allow-host" in reply.text


def test_the_largest_request(app: Flask) -> None:
    reply = app.test_client().post("/", data={"x": "y" * LARGEST_REQUEST})
    assert reply.status_code == 413
