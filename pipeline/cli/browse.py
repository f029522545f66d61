"""``paraforge browse``: choose the thresholds of a corpus by looking."""

from __future__ import annotations

from pathlib import Path

import typer


def browse(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    kept_only: bool = typer.Option(
        False, "--kept-only", help="leave out data/rejected next to the corpus, which has the refused pairs"
    ),
    host: str = typer.Option("127.0.0.1", help="address to listen on; anything but loopback lets others in"),
    port: int = typer.Option(8378, min=0, max=65535, help="port to listen on; 0 is any free one"),
    allow_host: list[str] = typer.Option(
        [], metavar="NAME", help="a further name of this server in addresses"
    ),
    open_browser: bool = typer.Option(False, "--open", help="open the page in the browser"),
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
    from paraforge.cli.pages import announcer

    serve(
        corpus,
        not kept_only,
        host,
        port,
        allow_host,
        announcer("Browse", host, "read the pairs", open_browser),
    )
