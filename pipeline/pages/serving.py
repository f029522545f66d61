"""Running local pages: an address to listen on, and an orderly end."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from paraforge.errors import InputError, require

if TYPE_CHECKING:
    from flask import Flask

HOST = "127.0.0.1"
EXTRA = "annotate"
_THREADS = 8


def require_packages() -> None:
    """Make sure that pages can be served, before anything else is done. Raises MissingPackageError: the extra
    ``annotate`` is not installed."""
    require("flask", EXTRA)
    require("waitress", EXTRA)


def serve_app(app: Flask, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM.

    app: what is served. host: address to bind to. port: 0 for any free one.
    announce: called with the address once it answers.

    Raises InputError: the address cannot be had.
    MissingPackageError: the extra ``annotate`` is not installed.
    """
    waitress = require("waitress", EXTRA)
    try:
        server = waitress.create_server(
            app, host=host, port=port, threads=_THREADS, ident=None, clear_untrusted_proxy_headers=True
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
        announce(f"http://{bracketed}:{bound}/")
        server.run()
    finally:
        server.close()
        # A watcher of signals that is late looks at the handler only now: it has to find the one that ran.
        for number, handler in previous.items() if not ended else ():
            signal.signal(number, handler)
