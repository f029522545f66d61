"""What commands that serve a page print."""

from __future__ import annotations

from collections.abc import Callable

import typer


def announcer(task: str, host: str, may: str, open_browser: bool, more: str = "") -> Callable[[str], None]:
    """What prints the page's address once it answers, and opens it if asked to.

    task: what one does there, e.g. ``Grade``. host: address that the server is bound to.
    may: what everybody can do who reaches it, if it is not loopback.
    open_browser: whether to open it in the browser. more: what else Ctrl-C means.
    """

    def announce(address: str) -> None:
        import webbrowser

        from paraforge.pages.security import is_loopback

        if not is_loopback(host):
            typer.echo(f"  Everybody who reaches this address can {may}.", err=True)
        typer.echo(f"{task} at {address}   (Ctrl-C stops{more})")
        if open_browser:
            webbrowser.open(address)

    return announce
