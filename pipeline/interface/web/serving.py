"""Running local pages: an address to listen on, and an orderly end."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from paraforge.base.errors import InputError, require

if TYPE_CHECKING:
    from flask import Flask

    from paraforge.interface.web.security import HostPolicy

EXTRA = "annotate"
_THREADS = 8
_CONNECTIONS = 500
"""Open at once; where the system allows a process few files, at most half of these."""
_SILENCE = 20
"""Seconds after which a connection without a whole request is closed."""


def require_packages() -> None:
    """Make sure that pages can be served, before anything else is done. Raises MissingPackageError: the extra
    ``annotate`` is not installed."""
    require("flask", EXTRA)
    require("waitress", EXTRA)


@dataclass(frozen=True)
class Listening:
    """Where pages are served.

    host: address to bind to. port: 0 for any free one.
    allowed: further names that browsers know this server by.
    announce: called with the address once it answers.
    """

    host: str
    port: int
    allowed: Sequence[str]
    announce: Callable[[str], None]


def serve_app(make: Callable[[HostPolicy], Flask], at: Listening) -> None:
    """Serve what ``make`` makes until Ctrl-C or SIGTERM.

    Raises InputError: the address cannot be listened on.
    MissingPackageError: the extra ``annotate`` is not installed.
    """
    waitress = require("waitress", EXTRA)
    from paraforge.interface.web.security import LARGEST_REQUEST, HostPolicy

    host, port = at.host, at.port
    app = make(HostPolicy(host, at.allowed))
    try:
        server = waitress.create_server(
            app,
            host=host,
            port=port,
            threads=_THREADS,
            ident=None,
            clear_untrusted_proxy_headers=True,
            connection_limit=_connections(),
            channel_timeout=_SILENCE,
            cleanup_interval=1,
            asyncore_use_poll=True,  # select() knows the first 1,024 files alone
            max_request_header_size=LARGEST_REQUEST,
            max_request_body_size=LARGEST_REQUEST,
        )
    except (OSError, ValueError) as error:
        busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise InputError(
            f"cannot listen on {host}, port {port}: {error}",
            remedy="Something else has this port; --port 0 takes a free one." if busy else None,
        ) from error
    ended = []

    def end(signum: int, frame: FrameType | None) -> None:
        ended.append(signum)
        raise SystemExit(0)

    previous = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        bracketed = f"[{host}]" if ":" in host else host
        # A name may have several addresses: waitress then listens on all of them.
        bound = getattr(server, "effective_port", None) or server.effective_listen[0][1]
        at.announce(f"http://{bracketed}:{bound}/")
        server.run()
    finally:
        server.close()
        # A watcher of signals that is late looks at the handler only now: it has to find the one that ran.
        for number, handler in previous.items() if not ended else ():
            signal.signal(number, handler)


def _connections() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return _CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _CONNECTIONS if files == resource.RLIM_INFINITY else max(8, min(_CONNECTIONS, files // 2))
