"""``paraforge work``: what is in the work directory, and removing what no stage uses any more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.errors import InputError
from paraforge.base.files import size
from paraforge.base.logs import counted
from paraforge.interface.cli.memory import memory_directory
from paraforge.interface.cli.settings import group

if TYPE_CHECKING:
    from paraforge.base.shards.inventory import State, StepWork

app = group(
    "The work directory: finished shards and models by the hash of what made them.\n\n"
    "It only ever grows: going back to earlier parameters finds the earlier results again."
)


@app.command("list")
def list_command(
    project: Path = typer.Argument(Path(), metavar="PROJECT", help="directory of the project"),
    work: Path | None = typer.Option(None, "--work", help="work directory; by default resources.work"),
) -> None:
    """Show what each step keeps: what the last run used, what is unfinished, and what is old.

    \b
    Example:
      paraforge work list
    """
    _, _, steps = _look(project, work)
    typer.echo(f"{'step':<24} {'current':>18} {'unfinished':>18} {'old':>18}")
    for step in steps:
        cells = [_cell(step, state) for state in ("current", "unfinished", "old")]
        held = f"  in use by {step.holder}" if step.holder else ""
        typer.echo(f"{step.name:<24} {cells[0]:>18} {cells[1]:>18} {cells[2]:>18}{held}")
    from paraforge.translation.memory.inventory import contents

    for one in contents(memory_directory(None if work is None else work / "memory", project)):
        typer.echo(
            f"memory {one.memory.path.name[:8]}: {counted(one.sentences, 'sentence')}, {size(one.bytes)}, "
            f"{one.days:.0f} days old, {one.use} ({one.title})"
        )
    old = sum(step.size("old") for step in steps)
    typer.echo(f"'paraforge work prune' frees {size(old)}.")


@app.command()
def prune(
    project: Path = typer.Argument(Path(), metavar="PROJECT", help="directory of the project"),
    steps: list[str] = typer.Option([], "--step", help="only this step; may be given several times"),
    unfinished: bool = typer.Option(
        False, "--unfinished", help="also what a run left that has not finished: it then begins again"
    ),
    everything: bool = typer.Option(False, "--all", help="also what the last run used"),
    memory: bool = typer.Option(
        False, "--memory", help="also what no corpus uses of the translation memory, shared or not"
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="only say what would be freed"),
    work: Path | None = typer.Option(None, "--work", help="work directory; by default resources.work"),
) -> None:
    """Remove what earlier parameters or input left. The published corpus and models stay as they are.

    A step that a process is writing in is left alone. What is removed costs its work again if its parameters
    come back; nothing else. The translation memory is kept, unless --memory is given: then translations go
    that the last finished run of no corpus used.

    \b
    Examples:
      paraforge work prune --dry-run
      paraforge work prune
      paraforge work prune --step translate-sentences --unfinished
    """
    from paraforge.base.shards.inventory import prune as remove
    from paraforge.translation.memory.inventory import contents
    from paraforge.translation.memory.inventory import prune as prune_set

    root, published, found = _look(project, work)
    unknown = [name for name in steps if name not in {step.name for step in found}]
    if unknown:
        raise InputError(
            f"no step {', '.join(unknown)}", remedy=f"There are {', '.join(step.name for step in found)}."
        )
    states: list[State] = ["old"]
    states += ["unfinished"] if unfinished or everything else []
    states += ["current"] if everything else []
    total = 0
    for step in found:
        entries = step.of(*states)
        if (steps and step.name not in steps) or not entries:
            continue
        if step.holder:
            typer.echo(f"{step.name}: left alone, in use by {step.holder}")
            continue
        freed = step.size(*states) if dry_run else remove(root, published, step, states)
        total += freed
        noun = "entry" if len(entries) == 1 else "entries"
        typer.echo(f"{step.name}: {len(entries):,} {noun}, {size(freed)}")
    for one in contents(memory_directory(None if work is None else work / "memory", project)):
        if memory and one.busy and not steps:
            typer.echo(f"memory {one.memory.path.name[:8]}: left alone, {one.use}")
        elif memory and one.unused and not steps:
            sentences = sum(segment.sentences for segment in one.unused)
            freed = one.unused_bytes if dry_run else prune_set(one)
            total += freed
            typer.echo(f"memory {one.memory.path.name[:8]}: {counted(sentences, 'sentence')}, {size(freed)}")
    typer.echo(f"{size(total)} {'would be freed' if dry_run else 'freed'}")


def _look(project: Path, work: Path | None) -> tuple[Path, list[Path], list[StepWork]]:
    from paraforge.base.shards.inventory import PUBLISHED, list_work
    from paraforge.interface.configuration import load_parameters

    if work is None:
        parameters = project / "params.yaml"
        work = project / (load_parameters(parameters).resources.work if parameters.is_file() else "work")
    published = [project / name for name in PUBLISHED if (project / name).is_dir()]
    return work, published, list_work(work, published)


def _cell(step: StepWork, state: State) -> str:
    entries = step.of(state)
    return f"{len(entries):,}: {size(step.size(state))}" if entries else "-"
