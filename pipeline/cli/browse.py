"""``paraforge browse``: choose the thresholds of a corpus by looking."""

from __future__ import annotations

from pathlib import Path

import typer

from paraforge.cli.pages import ALLOW_HOST, HOST, OPEN, listening


def browse(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    kept_only: bool = typer.Option(
        False, "--kept-only", help="leave out data/rejected next to the corpus, which has the refused pairs"
    ),
    host: str = HOST,
    port: int = typer.Option(8378, min=0, max=65535, help="port to listen on; 0 is any free one"),
    allow_host: list[str] = ALLOW_HOST,
    open_browser: bool = OPEN,
) -> None:
    """Serve a page with histograms of all scores, whose handles show what other thresholds would keep.

    The page shows kept and refused pairs side by side, and the section 'select' of params.yaml for what is
    on screen. The first call prepares counts, kept in ~/.cache/paraforge/browse. See docs/query.md.

    \b
    Examples:
      paraforge browse data/corpus
      paraforge browse data/corpus --port 9000 --open
    """
    from paraforge.browse.serving import serve

    at = listening(host, port, allow_host, open_browser, "Browse", "read the pairs")
    serve(corpus, not kept_only, at)
