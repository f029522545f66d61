"""Downloads, from a server on loopback that breaks off."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from paraforge.base.errors import InputError
from paraforge.intake.bitext.download import download

CONTENT = bytes(range(256)) * 5000


class Handler(BaseHTTPRequestHandler):
    """Serves :data:`CONTENT`; breaks off after ``cut`` bytes for the first ``failures`` requests."""

    failures: ClassVar[int] = 0
    ranges: ClassVar[bool] = True
    status: ClassVar[int] = 200
    requests: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        Handler.requests.append(self.headers.get("Range"))
        if Handler.status != 200:
            self.send_error(Handler.status)
            return
        wanted = self.headers.get("Range")
        begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and Handler.ranges else 0
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(CONTENT) - begin))
        self.end_headers()
        rest = CONTENT[begin:]
        if Handler.failures:
            Handler.failures -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(failures: int = 0, ranges: bool = True, status: int = 200) -> Iterator[str]:
    Handler.failures, Handler.ranges, Handler.status, Handler.requests = failures, ranges, status, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/file"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    with served() as url:
        download(url, tmp_path / "deep" / "file")
        download(url, tmp_path / "deep" / "file")
    assert (tmp_path / "deep" / "file").read_bytes() == CONTENT
    assert len(Handler.requests) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_taken_up(tmp_path: Path, ranges: bool) -> None:
    with served(failures=2, ranges=ranges) as url:
        download(url, tmp_path / "file", wait_seconds=0)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert len(Handler.requests) == 3
    assert Handler.requests[1] == f"bytes={len(CONTENT) // 2}-"


def test_what_cannot_be_had_leaves_nothing(tmp_path: Path) -> None:
    with served(failures=99) as url, pytest.raises(InputError, match="cannot be fetched"):
        download(url, tmp_path / "file", wait_seconds=0)
    assert list(tmp_path.iterdir()) == []


def test_no_such_file_is_not_asked_for_again(tmp_path: Path) -> None:
    with served(status=404) as url, pytest.raises(InputError, match="the server answers 404"):
        download(url, tmp_path / "file", wait_seconds=0)
    assert len(Handler.requests) == 1


def test_a_server_in_trouble_is_asked_again(tmp_path: Path) -> None:
    with served(status=503) as url, pytest.raises(InputError, match="503"):
        download(url, tmp_path / "file", wait_seconds=0)
    assert len(Handler.requests) == 5


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "x"])
def test_only_http(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="only http and https"):
        download(url, tmp_path / "file")
