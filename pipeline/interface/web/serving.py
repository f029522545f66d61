"""Serves local web pages, and protects them against requests from other pages.

A page on the internet can make the user's browser send requests to this server. With DNS rebinding, the Host
header has the name of that page; otherwise Origin and Sec-Fetch-Site, which every browser sends with a form,
show where the request came from. Jinja escapes all text, and pages have no inline code, so markup in a corpus
is never executed.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from paraforge.base.errors import InputError, require

if TYPE_CHECKING:
    from flask import Flask, Request, Response
    from werkzeug.wrappers import Response as WerkzeugResponse

    Page = str | Response | WerkzeugResponse | tuple[str, int]

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
    """Check that the packages for serving pages are installed; call it before other work.

    Raises MissingPackageError if the extra ``annotate`` is not installed.
    """
    for name in ("flask", "waitress"):
        require(name, "annotate")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether a server that listens on this address can only be reached from this machine."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def known_names(bind: str) -> set[str]:
    """Return the names under which requests are answered when a server listens on ``bind``."""
    known = ("localhost", bind, socket.gethostname(), socket.getfqdn())
    return {name.lower().rstrip(".") for name in known}


def is_known(header: str, names: Collection[str]) -> bool:
    """Return whether a Host header has an IP address or one of the names; DNS rebinding has neither."""
    try:
        host = urlsplit(f"//{header}").hostname
    except ValueError:
        return False
    # Only one dot at the end is removed: Flask cannot make links for a name that ends in two.
    return bool(host and "@" not in header and (_address(host) or host.removesuffix(".") in names))


def same_origin(incoming: Request) -> bool:
    """Return whether the headers say that a request comes from a page of this server, or from no page."""
    origin = incoming.headers.get("Origin")
    try:
        if origin is not None and urlsplit(origin).netloc != incoming.host:
            return False
    except ValueError:
        return False
    return incoming.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")


def make_app(product: str, bind: str) -> Flask:
    """Make a Flask application with this package's templates, styles and error page; it checks every request.

    product: name of the command, and of its style sheet and script.
    bind: address that the server listens on.
    """
    from flask import Flask, Response, abort, request
    from werkzeug.exceptions import HTTPException

    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals["product"] = product
    names = known_names(bind)

    @app.before_request
    def _check() -> Response | None:
        if not is_known(request.headers.get("Host", ""), names):
            # Plain text, because Flask can make no links if the Host header is not a valid name.
            words = "This server is not known by that name. Use the machine's IP address, or localhost.\n"
            return Response(words, 421, mimetype="text/plain")
        if not request.query_string.isascii():
            abort(400, "The address contains characters that must be percent-encoded.")
        # Another site may link to a page, but may not send forms or other requests.
        is_link = request.method == "GET" and request.headers.get("Sec-Fetch-Dest") == "document"
        if not (is_link or same_origin(request)):
            abort(403, "This request did not come from a page of this server. Load the page again.")
        return None

    @app.after_request
    def _seal(response: Response) -> Response:
        response.headers.update(HEADERS)
        if request.endpoint != "static":
            response.headers["Cache-Control"] = "no-store"
        return response

    @app.errorhandler(HTTPException)
    def _problem(error: HTTPException) -> Page:
        return problem_page(error.name, error.description or ""), error.code or 500

    return app


def problem_page(title: str, description: str) -> str:
    """Render the page for an error."""
    from flask import render_template

    return render_template("problem.html", title=title, description=description)


def serve_app(
    make: Callable[[str], Flask], host: str, port: int, announce: Callable[[str], None] = print
) -> None:
    """Serve the application that ``make`` returns for ``host``, until Ctrl-C or SIGTERM.

    host: address to listen on. port: 0 for any free port. announce: called with the URL once it is served.

    Raises InputError if the address cannot be used.
    """
    import waitress

    host = host.strip("[]")
    app = make(host)
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
            remedy="Another program uses this port; --port 0 chooses a free one." if busy else None,
        ) from error
    try:
        bracketed = f"[{host}]" if ":" in host else host
        # A name may have several addresses: waitress then listens on all of them.
        bound = getattr(server, "effective_port", None) or server.effective_listen[0][1]
        announce(f"http://{bracketed}:{bound}/")
        server.run()
    finally:
        server.close()
