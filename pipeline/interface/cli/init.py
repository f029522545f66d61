"""``paraforge init``: make a project, or bring one up to date."""

from pathlib import Path

import typer

from paraforge.base.logs import counted


def init(
    directory: Path = typer.Argument(
        None, metavar="DIR", help="a new or empty directory; with --upgrade the project, by default this one"
    ),
    sample: bool = typer.Option(
        False,
        "--sample",
        help="begin with the embedded sample, as without --bitext, and say nothing of yours",
    ),
    bitext: tuple[Path, Path] = typer.Option(
        None, metavar="FILE FILE", help="begin with this bitext: a foreign and an English file, line by line"
    ),
    upgrade: bool = typer.Option(
        False, "--upgrade", help="bring a project of an earlier version up to date; what you changed stays"
    ),
) -> None:
    """Make a project in a directory of its own, which 'dvc repro' then runs.

    \b
    Examples:
      paraforge init my                                  the embedded sample, and a place for your bitext
      paraforge init my --bitext a.cs.gz a.en.gz         your bitext: its lines and languages are checked
      paraforge init --upgrade                           after an upgrade of Paraforge
    """
    from paraforge.base.errors import InputError
    from paraforge.interface.project.creation import look_at, make_project

    if upgrade:
        if sample or bitext:
            raise InputError("--upgrade changes no corpus: give it without --sample and --bitext")
        _upgrade(directory or Path())
        return
    if directory is None:
        raise InputError("name the directory of the project: paraforge init DIR")
    if sample and bitext:
        raise InputError("give --sample or --bitext")
    found = look_at(*bitext) if bitext else None
    make_project(directory, found)
    typer.echo(f"{directory}: a project with {'the embedded sample' if found is None else 'your bitext'}")
    if found is not None:
        for name, path, language in zip(
            ("source_text", "reference"), (found.source, found.reference), found.languages, strict=True
        ):
            typer.echo(
                f"  {name}: {path}, {counted(found.lines, 'line')}, {language or 'of unknown language'}"
            )
        typer.echo(f"  choices: {' '.join(found.choices)}")
    elif not sample:
        typer.echo("  your bitext: edit configs/corpus/my.yaml, then")
        typer.echo("  paraforge configure corpus=my translation=small select=quality")
    typer.echo(f"Now: cd {directory} && dvc repro")
    typer.echo("Before 'dvc exp run': git add . && git commit -m 'A corpus'")


def _upgrade(project: Path) -> None:
    from paraforge.interface.project.stages import what_runs
    from paraforge.interface.project.upgrade import upgrade

    done = upgrade(project)
    for title, paths in (("new", done.new), ("updated", done.updated), ("yours, kept", done.kept)):
        for path in paths:
            typer.echo(f"  {title}: {path}")
    typer.echo(f"{project}: up to date")
    for line in what_runs(project):
        typer.echo(line)
