"""Serves local pages: checks who is answered, makes the application, gives the address, and ends in order.

A page on the internet can make a browser send requests to this server. If that page's name was rebound to
this address, the Host header has its name. Origin and Sec-Fetch-Site show where a form was sent from. The
token is in a cookie, which another site can neither read nor send. Jinja escapes all text, and no page has
inline code, so markup in a corpus cannot run.
"""

from __future__ import annotations

import errno
import hmac
import ipaddress
import secrets
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from paraforge.base.errors import InputError, require

if TYPE_CHECKING:
    from flask import Flask, Request, Response
    from werkzeug.wrappers import Response as WerkzeugResponse

    Page = str | Response | WerkzeugResponse | tuple[str, int]

EXTRA = "annotate"
COOKIE = "paraforge_page"
FIELD = "token"
_COOKIE_SECONDS = 365 * 24 * 3600
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LARGEST_REQUEST = 64 * 1024


def require_packages() -> None:
    """Check that pages can be served, before other work. Raises MissingPackageError if the extra
    ``annotate`` is not installed."""
    require("flask", EXTRA)
    require("waitress", EXTRA)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether an address to bind to reaches this machine alone."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


class HostPolicy:
    """Decides which Host headers are answered: addresses, as a page that rebinds a name has a name, and the
    names of this machine."""

    def __init__(self, bind: str, names: Iterable[str] = ()) -> None:
        known = ("localhost", bind, socket.gethostname(), socket.getfqdn(), *names)
        self.names = {name.lower().rstrip(".") for name in known}

    def accepts(self, header: str) -> bool:
        """Return whether a request with this Host header is answered."""
        try:
            host = urlsplit(f"//{header}").hostname
        except ValueError:
            return False
        # Flask makes no links for a name that ends in two dots.
        known = host and "@" not in header and (_address(host) or host.removesuffix(".") in self.names)
        return bool(known)


def same_origin(incoming: Request) -> bool:
    """Return whether a browser says that a request comes from a page of this very server."""
    origin = incoming.headers.get("Origin")
    try:
        if origin is not None and urlsplit(origin).netloc != incoming.host:
            return False
    except ValueError:
        return False
    return incoming.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")


def make_app(product: str, policy: HostPolicy) -> Flask:
    """Make an application with the templates, styles and error page of this package; requests are checked.

    product: name of the command, and of its style and script. policy: which Host headers are answered.

    Raises MissingPackageError if Flask is not installed.
    """
    require("flask", EXTRA)
    from flask import Flask, Response, abort, g, request
    from werkzeug.exceptions import HTTPException

    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True

    @app.before_request
    def _check() -> Response | None:
        if not policy.accepts(request.headers.get("Host", "")):
            # Plain text: Flask can make no link if the Host is not a name at all.
            words = "This server is not known by that name. Pass it to the command: --allow-host NAME.\n"
            return Response(words, 421, mimetype="text/plain")
        if not request.query_string.isascii():
            abort(400, "The address has letters that are not encoded as browsers encode them.")
        # Another site could otherwise keep this machine busy, though it could not read the answers.
        if not same_origin(request) and request.headers.get("Sec-Fetch-Dest") != "document":
            abort(403, "This address was not asked for by a page of this server.")
        given = request.cookies.get(COOKIE, "")
        g.token = given or secrets.token_urlsafe(32)
        if request.method in ("GET", "HEAD"):
            return None
        sent = request.form.get(FIELD, "")
        if not (same_origin(request) and given and hmac.compare_digest(given.encode(), sent.encode())):
            abort(403, "This form did not come from a page of this server. Load the page again.")
        return None

    @app.after_request
    def _seal(response: Response) -> Response:
        response.headers.update(HEADERS)
        if request.endpoint != "static":
            response.headers["Cache-Control"] = "no-store"
        token = g.get("token")
        if token and request.cookies.get(COOKIE) != token:
            response.set_cookie(COOKIE, token, max_age=_COOKIE_SECONDS, httponly=True, samesite="Lax")
        return response

    @app.context_processor
    def _common() -> dict[str, str]:
        return {"token": g.get("token", ""), "product": product}

    @app.errorhandler(HTTPException)
    def _problem(error: HTTPException) -> Page:
        return problem_page(error.name, error.description or ""), error.code or 500

    return app


def problem_page(title: str, description: str) -> str:
    """Render a page that says what went wrong."""
    from flask import render_template

    return render_template("problem.html", title=title, description=description)


def serve_app(
    make: Callable[[HostPolicy], Flask],
    host: str,
    port: int,
    allowed: Sequence[str] = (),
    announce: Callable[[str], None] = print,
) -> None:
    """Serve what ``make`` makes until Ctrl-C or SIGTERM.

    host: address to bind to. port: 0 for any free one. allowed: further names that browsers know this server
    by. announce: called with the address once it answers.

    Raises InputError if the address cannot be used; MissingPackageError if the extra ``annotate`` is not
    installed.
    """
    waitress = require("waitress", EXTRA)
    app = make(HostPolicy(host, allowed))
    try:
        server = waitress.create_server(
            app,
            host=host,
            port=port,
            threads=8,
            ident=None,
            clear_untrusted_proxy_headers=True,
            connection_limit=200,
            channel_timeout=20,  # seconds for a whole request
            max_request_header_size=LARGEST_REQUEST,
            max_request_body_size=LARGEST_REQUEST,
        )
    except (OSError, ValueError) as error:
        busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise InputError(
            f"cannot listen on {host}, port {port}: {error}",
            remedy="Another program uses this port; --port 0 takes a free one." if busy else None,
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
