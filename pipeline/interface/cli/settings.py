"""Shared by commands: options, checks of outputs, ``--set KEY=VALUE``, tables, the address of a page."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import typer

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import sweep
from paraforge.interface.web.serving import is_loopback

if TYPE_CHECKING:
    from pydantic import BaseModel

    Parameters = TypeVar("Parameters", bound=BaseModel)
    from rich.console import Console


OUTPUT = typer.Option(None, "--output", "-o", metavar="FILE", help="file to write; by default the terminal")
FORCE = typer.Option(False, "--force", help="overwrite the output")
DEVICE = typer.Option("auto", help="cpu, cuda, cuda:1, ...; auto: a GPU if available")
WORKERS = typer.Option(0, min=0, help="cores to use; 0: all")
THREADS = typer.Option(0, min=0, help="CPU threads; 0: one per core")
WORK = typer.Option(Path("work"), help="directory for unfinished work")
SETTINGS = typer.Option([], "--set", metavar="KEY=VALUE", help="set a parameter; may be repeated")

# Files that identify a directory written by this program.
_DESCRIPTIONS = (
    *("lexicon.json", "encoder.json", "decoders.json", "sif.json", "model.json", "modules.json"),
    *("_triplets.json", "_manifest.json", "_shards.json", "table.json"),
)

SENTENCES = typer.Argument(
    metavar="INPUT", help="sentences, one per line; plain, gz, bz2, xz or zst; - for standard input"
)
TRANSLATIONS = typer.Argument(
    metavar="OUTPUT", help="TSV to write: line, rank, score, text; optionally .gz; - for standard output"
)
DEVELOPMENT = typer.Option([], help="STS file or directory for model selection; may be repeated")
TEST_SETS = typer.Option([], "--test", help="STS file or directory for the final evaluation; may be repeated")


def group(text: str) -> typer.Typer:
    """Make a group of commands with the help ``text``."""
    commands = typer.Typer(help=text, rich_markup_mode=None, add_completion=False, no_args_is_help=True)
    commands.callback()(lambda: None)  # a group even if it has only one command
    return commands


def check_output(output: Path | None, force: bool, directory: bool = False) -> None:
    """Check that an output may be written: existing files need ``--force``, and published corpora and shards
    are never written into.

    output: None and ``-`` are standard output.
    directory: whether the command writes a directory; an existing one is only replaced if it is empty or was
        written by this program.

    Raises InputError if the output cannot be written.
    """
    if output is None or str(output) == "-":
        return
    parent = next(place for place in output.absolute().parents if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(
            "cannot be written to", parent, remedy="Use another output, or change its permissions."
        )
    if marks := [mark for mark in ("_manifest.json", "_shards.json") if (output.parent / mark).is_file()]:
        raise InputError(f"is inside the directory that {marks[0]} describes", output)
    if output.parent.is_dir():
        sweep(output.parent)
    if not output.exists() and not output.is_symlink():
        return
    if not force:
        raise InputError("already exists (use --force to overwrite)", output)
    if output.is_dir() != directory:
        raise InputError("is a directory" if output.is_dir() else "is not a directory", output)
    if directory and any(output.iterdir()) and not any((output / name).is_file() for name in _DESCRIPTIONS):
        names = ", ".join(_DESCRIPTIONS)
        raise InputError(
            "was not written by paraforge, so --force does not replace it",
            output,
            remedy=f"It contains none of {names}. Remove it yourself.",
        )


def check_table(output: Path | None, force: bool) -> None:
    """Check an output file with :func:`check_output`, and that its extension names a format for rows."""
    from paraforge.interface.query.database import copy_options

    check_output(output, force)
    if output is not None:
        copy_options(output)


def with_settings(
    parameters: type[Parameters], settings: Sequence[str], start: Mapping[str, Any] | None = None
) -> Parameters:
    """Return parameters with the values of ``--set KEY=VALUE``, checked like params.yaml.

    start: values from other options. Raises ConfigurationError, with a suggestion for a misspelled key.
    """
    return check_parameters(parameters, settings_of(settings, start))


def settings_of(settings: Sequence[str], start: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the values of ``--set KEY=VALUE`` and those from other options, not yet checked."""
    content: dict[str, Any] = dict(start or {})
    for setting in settings:
        put_setting(content, setting)
    return content


def check_parameters(parameters: type[Parameters], content: dict[str, Any]) -> Parameters:
    """Check parameters of a class. Raises ConfigurationError that names all wrong values."""
    from pydantic import ValidationError

    try:
        return parameters.model_validate(content)
    except ValidationError as error:
        from paraforge.interface.configuration import describe_problems

        raise describe_problems(error, parameters, content) from error


def put_setting(content: dict[str, Any], setting: str) -> None:
    """Set `a.b.0.c=value`. For an encoder of several parts, `encoder.dimension` sets that of each part."""
    from paraforge.interface.configuration.composition import place_of, value_of

    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise ConfigurationError([f"--set {setting}: expected KEY=VALUE, e.g. training.epochs=3"])
    if key.startswith("encoder."):
        content.setdefault("encoder", {"kind": "average"})  # without a name, it is the default encoder
    try:
        target, name = place_of(content, key)
        parts = target.get("parts") if isinstance(target, dict) and name not in ("kind", "parts") else None
        encoders = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        for part in encoders or [target]:
            part[name] = value_of(text)
    except ValueError as error:
        raise ConfigurationError([f"--set {setting}: {error}"]) from error


HOST = typer.Option(
    "127.0.0.1", help="address to listen on; other than the default, other people can open the page"
)

_NARROWEST = 60  # in narrower tables, figures would be cut, and texts be columns of letters


def text_width(plain: int) -> int:
    """Return the width in columns: the terminal's, or ``plain``."""
    return shutil.get_terminal_size((plain, 24)).columns if sys.stdout.isatty() else plain


def render(show: Callable[[Console], None], plain: int = 120) -> str:
    """Return what ``show`` prints, without the spaces that tables end their lines with."""
    from rich.console import Console

    buffer, terminal = io.StringIO(), sys.stdout.isatty()
    system: Literal["standard"] | None = "standard" if terminal else None
    width = max(text_width(plain), _NARROWEST)
    show(Console(file=buffer, width=width, force_terminal=terminal, highlight=False, color_system=system))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


def announcer(host: str, task: str, permission: str, on_stop: str = "") -> Callable[[str], None]:
    """Return a function that prints the address of a page once it answers.

    task: what people do there, e.g. ``Grade``.
    may: what anyone who can reach the page can do, unless the host is loopback. more: what else Ctrl-C does.
    """

    def announce(address: str) -> None:
        if not is_loopback(host):
            typer.echo(f"  Anyone who can reach this address can {permission}.", err=True)
        typer.echo(f"{task} at {address}   (Ctrl-C stops{on_stop})")

    return announce
