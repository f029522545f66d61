"""Running the page: prepares the corpus, opens its text, and serves."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from paraforge.browse.prepared import prepare
from paraforge.corpus.database import open_database
from paraforge.errors import InputError
from paraforge.interrupts import graceful_interrupts
from paraforge.pages.serving import Listening, require_packages, serve_app
from paraforge.publication.datasets import open_publication


def serve(directory: Path, with_rejected: bool, at: Listening) -> None:
    """Serve the page of a published corpus until Ctrl-C or SIGTERM.

    directory: of the corpus.
    with_rejected: whether the refused pairs next to it are read, too.

    Raises InputError: no corpus, a damaged one, or one without pairs.
    """
    require_packages()
    from paraforge.browse.browser import Browser
    from paraforge.browse.server import create_app

    datasets = open_publication(directory, with_rejected)
    if not sum(dataset.rows for dataset in datasets):
        raise InputError("there are no pairs to look at", directory)
    with graceful_interrupts():
        corpus = prepare(datasets)
    with open_database(datasets) as connection:
        browser = Browser(corpus, connection)
        # Loops are compiled before anybody waits for them.
        browser.count(browser.default)
        serve_app(partial(create_app, browser), at)
