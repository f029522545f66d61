"""``paraforge memory import``: add translations from another system to the translation memory."""

from __future__ import annotations

from pathlib import Path

import typer

from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.interface.cli.settings import group

app = group(
    "Import into the translation memory, which keeps the translations of every sentence.\n\n"
    "It is a directory with a subdirectory of Parquet files for each combination of model, engine and "
    "options. Read it with DuckDB, copy it with cp, remove a subdirectory with rm -r."
)

_MEMORY = typer.Option(
    None,
    "--memory",
    metavar="DIR",
    help="directory of the memory; by default resources.translation_memory, or work/memory",
)


@app.callback()
def _memory() -> None:
    """Make this a group, although it has only one command."""


@app.command("import")
def import_command(
    paths: list[Path] = typer.Argument(metavar="FILE...", help="Parquet files"),
    name: str = typer.Option(..., "--name", help="name for translate.imported.name"),
    memory: Path | None = _MEMORY,
) -> None:
    """Add translations from another system to the memory.

    A file has the columns sentence (as source_text in data/ingested) and hypotheses (a text, or a list of
    texts with the best first), and optionally scores (mean log-probabilities per token). Translations that
    the memory already has do not change.

    \b
    Examples:
      paraforge memory import marian.parquet --name marian-2024
      paraforge configure translation=imported translate.imported.name=marian-2024
    """
    from paraforge.translation.memory.files import import_file

    root = memory_directory(memory)
    for path in paths:
        found, sentences = import_file(path, root, name)
        typer.echo(f"{path}: imported {counted(sentences, 'sentence')} into {found.path}", err=True)


def memory_directory(memory: Path | None) -> Path:
    """Return the given directory, or the memory of the project here."""
    from paraforge.base.shards.resources import Resources
    from paraforge.interface.configuration import PARAMETERS, load_parameters

    if memory is not None:
        if memory.exists() and not memory.is_dir():
            raise InputError("not a directory", memory)
        return memory
    resources = load_parameters().resources if PARAMETERS.is_file() else Resources()
    return resources.memory_directory()
