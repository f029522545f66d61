"""``paraforge configure``: compose params.yaml from the groups in configs/."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from paraforge.interface.configuration.choices import Configured


def configure(
    overrides: list[str] = typer.Argument(
        None, metavar="GROUP=CHOICE|KEY=VALUE", help="what to choose, e.g. corpus=tatoeba translate.beam=4"
    ),
    configs: Path = typer.Option(
        None, metavar="DIR", help="directory of the groups; by default configs/ here, or the package's own"
    ),
    output: Path = typer.Option(Path("params.yaml"), "--output", "-o", metavar="FILE", help="file to write"),
    show: bool = typer.Option(False, "--show", help="print instead of writing"),
    groups: bool = typer.Option(False, "--groups", help="list the groups and their choices"),
    reset: bool = typer.Option(False, "--reset", help="forget earlier choices and edits"),
    check_files: bool = typer.Option(
        True, "--files/--no-files", help="look for your files and at their first rows, or not"
    ),
) -> None:
    """Compose params.yaml from the groups in configs/, check every value and every file, and write it.

    Choices stay until they are changed: what was chosen before, and what was edited in params.yaml, is kept
    where this call says nothing of it. Prints what changes, and which stages 'dvc repro' will run for it.

    \b
    Examples:
      paraforge configure corpus=tatoeba translation=small     another bitext, another model
      paraforge configure corpus=my select=quality             your own configs/corpus/my.yaml
      paraforge configure select=wieting2021                   another selection of the same corpus
      paraforge configure --reset                              back to the embedded sample
      paraforge configure --groups                             what there is to choose from
    """
    from paraforge.base.errors import ConfigurationError
    from paraforge.base.files import write_whole
    from paraforge.interface.cli.outputs import FileKind, check_output_file
    from paraforge.interface.configuration.checks import check_files as check
    from paraforge.interface.configuration.choices import reconfigure
    from paraforge.interface.configuration.composition import choices, configs_directory
    from paraforge.interface.configuration.inputs import INPUTS, link_inputs
    from paraforge.interface.project.files import check_versions
    from paraforge.interface.project.stages import stages_to_run

    configs = configs_directory(configs)
    if groups:
        for group, names in choices(configs).items():
            typer.echo(f"{group}: {', '.join(names)}")
        return
    check_versions(output.parent)
    # Whatever a parameter file has: it may be broken, with --reset.
    parameter_file = FileKind("a file of parameters", lambda path: "\ningest:" in f"\n{path.read_text()}")
    check_output_file(output, True, parameter_file)
    found = reconfigure(configs, overrides or [], output, reset)
    problems = check(found.parameters) if check_files else []
    if problems:
        raise ConfigurationError(problems)
    if show:
        typer.echo(found.text, nl=False)
        return
    write_whole(output, found.text)
    typer.echo("\n".join(_lines(found, output)))
    chosen = dict(one.split("=", 1) for one in found.choices)
    if chosen.get("corpus", "sample") != "sample" and "select" not in chosen:
        typer.echo("select=sample is for the embedded sample; for your own bitext choose select=quality.")
    project = output.parent
    if (project / "dvc.yaml").is_file():
        link_inputs(found.parameters, root=project / INPUTS)
        typer.echo(_what_runs(stages_to_run(project, found.content)))


def _lines(found: Configured, output: Path) -> list[str]:
    lines = [f"{output}: {' '.join(found.choices) or 'the embedded sample'}"]
    lines += [f"  no longer chosen: {one}" for one in found.forgotten]
    lines += [f"  kept as edited: {one}" for one in found.edited]
    if found.changes is None:
        return [*lines, "  written anew"]
    return [*lines, *(f"  {one}" for one in found.changes or [])] + (
        [] if found.changes else ["  nothing changes"]
    )


def _what_runs(stages: tuple[list[str], list[str]] | None) -> str:
    if stages is None:
        return "'dvc repro' runs every stage: nothing has run here yet."
    own, after = stages
    if not own:
        return "'dvc repro' has nothing to run for this."
    then = f", then what reads their output: {', '.join(after)}" if after else ""
    return f"'dvc repro' runs {', '.join(own)}{then}."
