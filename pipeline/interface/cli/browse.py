"""``paraforge browse``: choose the thresholds of a corpus by looking."""

from functools import partial
from pathlib import Path

import typer

from paraforge.base.errors import InputError
from paraforge.interface.cli.pages import ALLOW_HOST, HOST, OPEN, listening


def browse(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    kept_only: bool = typer.Option(
        False, "--kept-only", help="leave out data/rejected next to the corpus, which has the rejected pairs"
    ),
    host: str = HOST,
    port: int = typer.Option(8378, min=0, max=65535, help="port to listen on; 0 is any free one"),
    allow_host: list[str] = ALLOW_HOST,
    open_browser: bool = OPEN,
) -> None:
    """Serve a page with histograms of all scores, whose handles show what other thresholds would keep.

    The page shows kept and rejected pairs side by side, and the section 'select' of params.yaml for what is
    on screen. The first call prepares counts, kept in ~/.cache/paraforge/browse. See docs/query.md.

    \b
    Examples:
      paraforge browse data/corpus
      paraforge browse data/corpus --port 9000 --open
    """
    from paraforge.interface.web.serving import require_packages, serve_app

    require_packages()
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.corpus.publication.datasets import open_publication
    from paraforge.interface.browse.browser import Browser
    from paraforge.interface.browse.prepared import prepare
    from paraforge.interface.browse.server import create_app
    from paraforge.interface.query.database import open_database

    at = listening(host, port, allow_host, open_browser, "Browse", "read the pairs")
    datasets = open_publication(corpus, not kept_only)
    if not sum(dataset.rows for dataset in datasets):
        raise InputError("there are no pairs to look at", corpus)
    with graceful_interrupts():
        prepared = prepare(datasets)
    with open_database(datasets) as connection:
        browser = Browser(prepared, connection)
        # Loops are compiled before anybody waits for them.
        browser.count(browser.default)
        serve_app(partial(create_app, browser), at)
