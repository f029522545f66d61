"""What commands that serve a page print."""

import typer

from paraforge.interface.web.serving import Listening

HOST = typer.Option("127.0.0.1", help="address to listen on; anything but loopback lets others in")
ALLOW_HOST = typer.Option([], metavar="NAME", help="a further name of this server in addresses")
OPEN = typer.Option(False, "--open", help="open the page in the browser")


def listening(
    host: str, port: int, allowed: list[str], open_browser: bool, task: str, may: str, more: str = ""
) -> Listening:
    """Where a page is served; its address is printed once it answers, and opened if asked to.

    task: what one does there, e.g. ``Grade``.
    may: what everybody can do who reaches it, if it is not loopback. more: what else Ctrl-C means.
    """

    def announce(address: str) -> None:
        import webbrowser

        from paraforge.interface.web.security import is_loopback

        if not is_loopback(host):
            typer.echo(f"  Everybody who reaches this address can {may}.", err=True)
        typer.echo(f"{task} at {address}   (Ctrl-C stops{more})")
        if open_browser:
            webbrowser.open(address)

    return Listening(host, port, allowed, announce)
