"""The application that every local page begins as: protected, with the shared frame, style and error page."""

from flask import Blueprint, Flask, Response, render_template
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WerkzeugResponse

from paraforge.interface.web.security import HostPolicy, protect

LARGEST_REQUEST = 64 * 1024
Page = str | Response | WerkzeugResponse | tuple[str, int]


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
