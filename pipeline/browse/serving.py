"""Running the page: prepares the corpus, opens its text, and serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from paraforge.browse.prepared import prepare
from paraforge.corpus.database import open_database
from paraforge.errors import InputError
from paraforge.interrupts import graceful_interrupts
from paraforge.pages.serving import HOST, require_packages, serve_app
from paraforge.publication.datasets import open_publication

PORT = 8378


def serve(
    directory: Path,
    with_rejected: bool = True,
    host: str = HOST,
    port: int = PORT,
    allowed: Sequence[str] = (),
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the page of a published corpus until Ctrl-C or SIGTERM.

    directory: of the corpus.
    with_rejected: whether the refused pairs next to it are read, too.
    host, port, announce: see :func:`paraforge.pages.serving.serve_app`.
    allowed: further names that browsers know this server by.

    Raises InputError: no corpus, a damaged one, or one without pairs.
    """
    require_packages()
    from paraforge.browse.browser import Browser
    from paraforge.browse.server import create_app
    from paraforge.pages.security import HostPolicy

    datasets = open_publication(directory, with_rejected)
    if not sum(dataset.rows for dataset in datasets):
        raise InputError("there are no pairs to look at", directory)
    with graceful_interrupts():
        corpus = prepare(datasets)
    with open_database(datasets) as connection:
        browser = Browser(corpus, connection)
        # Loops are compiled before anybody waits for them.
        browser.count(browser.default)
        serve_app(create_app(browser, HostPolicy(host, allowed)), host, port, announce)
