"""``paraforge memory``: what the translation memory holds, and translations out of it and into it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.errors import InputError
from paraforge.base.files import size
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.logs import counted
from paraforge.interface.cli.outputs import check_output_file, table
from paraforge.interface.cli.settings import group

if TYPE_CHECKING:
    from paraforge.translation.memory.memory import MemorySet

app = group(
    "The translation memory: every sentence that was ever translated, with its hypotheses.\n\n"
    "It has a set for each model with its engine and options; 'dvc repro' translates what is not in it."
)

_MEMORY = typer.Option(
    None,
    "--memory",
    metavar="DIR",
    help="the memory; by default resources.translation_memory of params.yaml, or work/memory",
)


@app.command("list")
def list_command(memory: Path | None = _MEMORY) -> None:
    """Show the sets: model, options, sentences, size, age, and how much of it no corpus uses.

    A sentence that two runs translated, at the same time or after a failure, counts twice.

    \b
    Example:
      paraforge memory list
    """
    from paraforge.translation.memory.inventory import contents

    root = memory_directory(memory)
    sets = contents(root)
    if not sets:
        typer.echo(f"{root}: no translations")
    for one in sets:
        used = f"{one.use}, " if one.unused or one.busy else ""
        typer.echo(
            f"{one.memory.path.name[:8]}  {counted(one.sentences, 'sentence')}, {used}{size(one.bytes)}, "
            f"{one.days:.0f} days old: {one.title}"
        )


@app.command("export")
def export_command(
    output: Path = typer.Argument(metavar="OUTPUT", help="Parquet file to write"),
    name: str = typer.Option(
        "", help="first letters of a set's name in 'paraforge memory list', or the name of an import"
    ),
    memory: Path | None = _MEMORY,
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Write translations as plain Parquet: sentence, hypotheses, scores, model, options.

    A row is a sentence, the best hypothesis first. 'paraforge memory import' takes it to another memory.

    \b
    Examples:
      paraforge memory export translations.parquet
      paraforge memory export translations.parquet --name 3fa9c1d2
    """
    from paraforge.translation.memory.files import export_set

    kind = table("exported translations", "parquet", ["sentence", "hypotheses", "scores", "model", "options"])
    check_output_file(output, force, kind)
    with graceful_interrupts():
        sentences = export_set(_chosen(memory_directory(memory), name), output)
    typer.echo(f"{output}: {counted(sentences, 'sentence')}", err=True)


@app.command("import")
def import_command(
    paths: list[Path] = typer.Argument(metavar="FILE...", help="Parquet files"),
    name: str = typer.Option(
        "", "--name", help="for translations made elsewhere; then translate.imported.name: NAME uses them"
    ),
    memory: Path | None = _MEMORY,
) -> None:
    """Add translations to the memory: an export of another memory, or what another system made.

    A file has the columns sentence (as source_text in data/ingested) and hypotheses (a text, or a list of
    texts, the best first), perhaps also scores (mean log-probabilities per token). What is known already
    stays as it is. An export goes to the set of its model and options unless it gets a name.

    \b
    Examples:
      paraforge memory import translations.parquet
      paraforge memory import marian.parquet --name marian-2024
      paraforge configure translation=imported translate.imported.name=marian-2024
    """
    from paraforge.translation.memory.files import import_file

    root = memory_directory(memory)
    with graceful_interrupts():
        for path in paths:
            found, sentences = import_file(path, root, name or None)
            typer.echo(f"{path}: {counted(sentences, 'sentence')}, to {found.path}", err=True)


def memory_directory(memory: Path | None, project: Path = Path()) -> Path:
    """The memory that is named, or that of a project."""
    from paraforge.base.shards.resources import Resources
    from paraforge.interface.configuration import load_parameters

    if memory is not None:
        if memory.exists() and not memory.is_dir():
            raise InputError("not a directory", memory)
        return memory
    parameters = project / "params.yaml"
    resources = load_parameters(parameters).resources if parameters.is_file() else Resources()
    return project / resources.memory_directory()


def _chosen(root: Path, name: str) -> MemorySet:
    from paraforge.translation.engines.imported import NAME as IMPORTED
    from paraforge.translation.memory.memory import sets_of

    sets = sets_of(root)
    found = [one for one in sets if one.path.name.startswith(name) or one.description.get(IMPORTED) == name]
    if len(found) == 1:
        return found[0]
    if not sets:
        raise InputError("no translations", root, remedy="Name another memory with --memory.")
    raise InputError(
        f"{len(found)} sets {f'match {name!r}' if name else 'are there'}",
        root,
        remedy="Say which with --name: 'paraforge memory list' shows them.",
    )
