"""Who is answered: Host, Origin, tokens; and what a browser is told to refuse."""

import re
from pathlib import Path

import pytest

pytest.importorskip("flask")

from flask.testing import FlaskClient

from paraforge.interface.annotation.server import create_app
from paraforge.interface.annotation.store import AnnotationStore, create_store
from paraforge.interface.web.security import COOKIE, HostPolicy, is_loopback
from tests.interface.annotation.evaluations import small_draw


@pytest.fixture
def store(tmp_path: Path) -> AnnotationStore:
    return create_store(tmp_path / "annotations.sqlite", small_draw())


@pytest.fixture
def client(store: AnnotationStore) -> FlaskClient:
    return create_app(store, HostPolicy("127.0.0.1")).test_client()


def token_of(client: FlaskClient) -> str:
    found = re.search(r'name="token" value="([^"]+)"', client.get("/").text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("header", "answered"),
    [
        ("localhost", True),
        ("LOCALHOST:8377", True),
        ("127.0.0.1:8377", True),
        ("127.8.9.1", True),
        ("[::1]:8377", True),
        ("localhost.:9000", True),
        ("grading.lab", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("192.168.1.7:8377", False),
        ("evil@localhost", False),
        ("localhost@evil.example", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_hosts_of_a_local_server(header: str, answered: bool) -> None:
    assert HostPolicy("127.0.0.1", ["grading.lab"]).accepts(header) is answered


def test_hosts_of_an_open_server() -> None:
    policy = HostPolicy("0.0.0.0", ["grading.lab"])
    assert all(map(policy.accepts, ("192.168.1.7:8377", "[fe80::1]:80", "grading.lab", "localhost")))
    # Addresses cannot be rebound, names can.
    assert not policy.accepts("evil.example")


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("box", False),
    ],
)
def test_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) is local


def test_a_rebound_name_gets_nothing(client: FlaskClient) -> None:
    reply = client.get("/", headers={"Host": "evil.example"})
    assert reply.status_code == 421 and "--allow-host" in reply.text
    assert "Set-Cookie" not in reply.headers
    assert client.get("/static/annotate.js", headers={"Host": "evil.example"}).status_code == 421


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
    ],
)
def test_posts_come_from_own_pages(
    client: FlaskClient, store: AnnotationStore, headers: dict[str, str], status: int
) -> None:
    reply = client.post("/annotators", data={"token": token_of(client), "name": "Anna"}, headers=headers)
    assert reply.status_code == status
    assert len(store.annotators()) == (status == 303)


@pytest.mark.parametrize("token", [None, "", "guessed", "é"])
def test_posts_need_the_token(client: FlaskClient, store: AnnotationStore, token: str | None) -> None:
    token_of(client)
    fields = {"name": "Anna"} if token is None else {"name": "Anna", "token": token}
    reply = client.post("/annotators", data=fields)
    assert reply.status_code == 403 and "Load the page again" in reply.text
    assert store.annotators() == []


def test_a_form_without_the_cookie_is_refused(store: AnnotationStore) -> None:
    app = create_app(store, HostPolicy("127.0.0.1"))
    token = token_of(app.test_client())
    assert app.test_client().post("/annotators", data={"token": token, "name": "A"}).status_code == 403
    # An empty cookie does not match an empty field.
    client = app.test_client()
    client.set_cookie(COOKIE, "")
    assert client.post("/annotators", data={"token": "", "name": "A"}).status_code == 403


def test_the_token_outlives_the_server(store: AnnotationStore, client: FlaskClient) -> None:
    token = token_of(client)
    restarted = create_app(AnnotationStore(store.path), HostPolicy("127.0.0.1")).test_client()
    restarted.set_cookie(COOKIE, token)
    assert restarted.post("/annotators", data={"token": token, "name": "Anna"}).status_code == 303


def test_headers(client: FlaskClient) -> None:
    reply = client.get("/")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cache-Control"] == "no-store"
    cookie = reply.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie
