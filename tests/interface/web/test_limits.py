"""Limits of pages: hosts, origins, headers, and sizes of requests."""

import io
import socket
from typing import Any

import pytest
from flask import Flask, request
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder

from paraforge.interface.cli.settings import announcer
from paraforge.interface.web.serving import LARGEST_REQUEST, is_known, is_loopback, known_names, make_app


@pytest.fixture(scope="module", params=["127.0.0.1", "0.0.0.0"])
def app(request: pytest.FixtureRequest) -> Flask:
    app = make_app("browse", request.param)
    app.add_url_rule("/", "first", _answer, methods=["GET", "POST"])
    return app


def _answer() -> str:
    return f"{len(request.form)} {len(request.args)}"


def status_of(app: Flask, environ: Any) -> str:
    """Return the status of the only answer to a request."""
    answers: list[str] = []
    b"".join(app.wsgi_app(environ, lambda status, *_: answers.append(status)))  # type: ignore[arg-type,return-value,func-returns-value]
    (answer,) = answers
    return answer.split()[0]


HOSTS = [
    "a..b", "x" * 300, ".", "..", "[", "[::1", "]", "a b", "é", "\x00", "@", "a@b", "1.2.3.4..", "[::1%lo]",
    "-", "localhost", "localhost:99999", "localhost:x", "localhost..", "grading.lab", "127.0.0.1", "xn--a",
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
def test_malformed_requests_do_not_crash_pages(
    app: Flask, method: str, headers: dict[str, str], path: str, query: str, kind: str
) -> None:
    environ = EnvironBuilder(method=method).get_environ()
    body = b"a=b&x=%zz"
    environ |= {"PATH_INFO": path, "QUERY_STRING": query, "wsgi.input": io.BytesIO(body)}
    environ |= {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": kind, "HTTP_COOKIE": "a=b"}
    environ |= {f"HTTP_{name}": value for name, value in headers.items()}
    assert int(status_of(app, environ)) < 500, environ


@pytest.mark.parametrize("host", HOSTS)
def test_malformed_hosts_do_not_crash_pages(app: Flask, host: str) -> None:
    assert int(status_of(app, EnvironBuilder().get_environ() | {"HTTP_HOST": host})) < 500


@pytest.mark.parametrize("host", ["a..b", "x" * 300, "1.2.3.4..", "localhost..", "evil.example"])
def test_invalid_or_rebound_hosts_are_refused(app: Flask, host: str) -> None:
    for address in ("/", "/static/annotate.js"):
        reply = app.test_client().get(address, headers={"Host": host})
        assert reply.status_code == 421 and "IP address" in reply.text


def test_oversized_requests_are_refused(app: Flask) -> None:
    assert app.test_client().post("/", data={"x": "y" * LARGEST_REQUEST}).status_code == 413


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
def test_allowed_hosts_are_addresses_and_known_names(bind: str) -> None:
    """An address cannot be rebound to another host, but a name can."""
    names = known_names(bind)
    known = "localhost LOCALHOST:8377 127.0.0.1:8377 127.8.9.1 [::1]:8377 localhost.:9000"
    more = [socket.gethostname(), "192.168.1.7:8377", "[fe80::1]:80"]
    assert all(is_known(one, names) for one in [*known.split(), *more])
    others = (
        "evil.example localhost.evil.example 127.0.0.1.evil.example evil@localhost localhost@evil.example"
    )
    assert not any(is_known(other, names) for other in [*others.split(), "", "[::1"])


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "::1", "[::1]", "LOCALHOST")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "box")))


@pytest.mark.parametrize(("host", "open_to_all"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_page_audience_is_announced(host: str, open_to_all: bool, capsys: pytest.CaptureFixture[str]) -> None:
    announcer(host, "Grade", "grade pairs", " it")("http://box/")
    said = capsys.readouterr()
    assert said.out == "Grade at http://box/   (Ctrl-C stops it)\n"
    assert said.err == "  Anyone who can reach this address can grade pairs.\n" * open_to_all


@pytest.mark.parametrize(
    ("headers", "form", "link"),
    [
        ({}, 200, 200),
        ({"Origin": "http://localhost"}, 200, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200, 200),
        ({"Sec-Fetch-Site": "none"}, 200, 200),
        ({"Origin": "http://evil.example"}, 403, 403),
        ({"Origin": "http://localhost:9999"}, 403, 403),
        ({"Origin": "null"}, 403, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403, 403),
        # As browsers send a form of another page, and follow a link on one.
        ({"Origin": "http://evil.example", "Sec-Fetch-Dest": "document"}, 403, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}, 403, 200),
    ],
)
def test_cross_site_requests_are_refused(app: Flask, headers: dict[str, str], form: int, link: int) -> None:
    assert app.test_client().post("/", data={"name": "Anna"}, headers=headers).status_code == form
    assert app.test_client().get("/", headers=headers).status_code == link


def test_headers(app: Flask) -> None:
    reply = app.test_client().get("/")
    policy = dict(part.split(" ") for part in reply.headers["Content-Security-Policy"].split("; "))
    nothing = dict.fromkeys(("default-src", "base-uri", "frame-ancestors"), "'none'")
    own = ("style-src", "script-src", "img-src", "connect-src", "form-action")
    assert policy == nothing | dict.fromkeys(own, "'self'")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    for name in ("Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"):
        assert reply.headers[name] == "same-origin"
    assert reply.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in reply.headers
