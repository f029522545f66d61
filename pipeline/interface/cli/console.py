"""Prints tables and headings as text, with colors only for a terminal, and the messages of commands that
serve a page."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import typer

from paraforge.interface.web.serving import is_loopback

if TYPE_CHECKING:
    from rich.console import Console


HOST = typer.Option(
    "127.0.0.1", help="address to listen on; with another address, other people can open the page"
)

_NARROWEST = 60  # in narrower tables, figures would be cut, and texts be columns of letters


def text_width(plain: int) -> int:
    """Return the width in columns: the terminal's, or ``plain``."""
    return shutil.get_terminal_size((plain, 24)).columns if sys.stdout.isatty() else plain


def rendered(show: Callable[[Console], None], plain: int = 120) -> str:
    """Return what ``show`` prints, without the spaces that tables end their lines with."""
    from rich.console import Console

    buffer, terminal = io.StringIO(), sys.stdout.isatty()
    system: Literal["standard"] | None = "standard" if terminal else None
    width = max(text_width(plain), _NARROWEST)
    show(Console(file=buffer, width=width, force_terminal=terminal, highlight=False, color_system=system))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


def announcer(host: str, task: str, may: str, more: str = "") -> Callable[[str], None]:
    """Return a function that prints the address of a page once it answers.

    task: what people do there, e.g. ``Grade``.
    may: what anyone who can reach the page can do, unless the host is loopback. more: what else Ctrl-C does.
    """

    def announce(address: str) -> None:
        if not is_loopback(host):
            typer.echo(f"  Anyone who can reach this address can {may}.", err=True)
        typer.echo(f"{task} at {address}   (Ctrl-C stops{more})")

    return announce
