"""Starts the command line of a benchmark, an experiment or a script."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import typer

from paraforge.base.interrupts import end_on_signals, errors_in_words


def app_of(main: Callable[..., Any]) -> typer.Typer:
    """Return the command of a function; its help begins with that of its module."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    about = f"{sys.modules[main.__module__].__doc__}\n{inspect.getdoc(main)}"
    app.command(help=in_lines(about))(main)
    return app


def in_lines(text: str) -> str:
    """Return a help whose lines stay lines: each paragraph begins with ``\\b``."""
    return "\b\n" + text.replace("\n\n", "\n\n\b\n")


def start(program: Callable[..., Any] | typer.Typer) -> None:
    """Run a function or an app; a mistake of the user is one line and an exit code."""
    end_on_signals()
    app = program if isinstance(program, typer.Typer) else app_of(program)
    with errors_in_words(lambda message: typer.echo(message, err=True)):
        app()
