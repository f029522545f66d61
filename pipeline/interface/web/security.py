"""What keeps other web pages away from a local server: Host check, same-origin posts, tokens, headers,
and the application that every local page begins as: protected, with the shared frame, style and error page.

A page on the internet can make a browser send requests to this server. The Host header has such a page's
own name when it was rebound to this address; Origin and Sec-Fetch-Site show where a form was; and the token
is in a cookie that such a page can neither read nor send from another site.
"""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from flask import Blueprint, Flask, Request, Response, abort, g, render_template, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WerkzeugResponse

COOKIE = "paraforge_page"
FIELD = "token"
_COOKIE_SECONDS = 365 * 24 * 3600
HEADERS = {
    # Own files only, nothing inline: text of a corpus that got through as markup could not run anyway.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LARGEST_REQUEST = 64 * 1024
Page = str | Response | WerkzeugResponse | tuple[str, int]


def is_loopback(host: str) -> bool:
    """Whether an address to bind to reaches this machine alone."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


class HostPolicy:
    """Which Host headers are answered.

    Bound to loopback: localhost and loopback addresses, on any port, so that a tunnel may change it. Bound to
    anything else: also addresses (a page that rebinds a name has a name) and this machine's names.
    """

    def __init__(self, bind: str, names: Iterable[str] = ()) -> None:
        self.local = is_loopback(bind)
        own = () if self.local else (bind, socket.gethostname(), socket.getfqdn())
        self.names = {name.lower().rstrip(".") for name in ("localhost", *own, *names)}

    def accepts(self, header: str) -> bool:
        """Whether a request with this Host header is answered."""
        try:
            host = urlsplit(f"//{header}").hostname
        except ValueError:
            return False
        if not host or "@" in header:
            return False
        address = _address(host)
        if address is not None:
            return not self.local or address.is_loopback or host in self.names
        return host.removesuffix(".") in self.names  # of a name with two, Flask makes no links


def same_origin(incoming: Request) -> bool:
    """Whether a browser says that a post comes from a page of this very server."""
    origin = incoming.headers.get("Origin")
    try:
        if origin is not None and urlsplit(origin).netloc != incoming.host:
            return False
    except ValueError:
        return False
    return incoming.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")


def protect(app: Flask, policy: HostPolicy) -> None:
    """Check every request to ``app``, and set headers and cookie on every response."""

    @app.before_request
    def _check() -> Response | None:
        if not policy.accepts(request.headers.get("Host", "")):
            # Not a page: Flask can make no link where the Host is no name at all.
            words = "This server is not known by that name. Give it to the command: --allow-host NAME.\n"
            return Response(words, 421, mimetype="text/plain")
        if not request.query_string.isascii():
            abort(400, "The address has letters that are not encoded, as browsers do it.")
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
        for name, value in HEADERS.items():
            response.headers[name] = value
        if request.endpoint not in ("static", "pages.static"):
            response.headers["Cache-Control"] = "no-store"
        token = g.get("token")
        if token and request.cookies.get(COOKIE) != token:
            response.set_cookie(COOKIE, token, max_age=_COOKIE_SECONDS, httponly=True, samesite="Lax")
        return response

    @app.context_processor
    def _token() -> dict[str, str]:
        return {"token": g.get("token", "")}


def make_app(package: str, policy: HostPolicy) -> Flask:
    """An application with the templates and static files of ``package`` and the shared ones.

    package: ``__name__`` of a module of the package. policy: which Host headers are answered.
    """
    app = Flask(package)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.register_blueprint(
        Blueprint(
            "pages", __name__, static_folder="static", static_url_path="/pages", template_folder="templates"
        )
    )
    protect(app, policy)

    @app.errorhandler(HTTPException)
    def problem(error: HTTPException) -> Page:
        return problem_page(error.name, error.description or ""), error.code or 500

    return app


def problem_page(title: str, description: str) -> str:
    """A page that says what went wrong."""
    return render_template("problem.html", title=title, description=description)
