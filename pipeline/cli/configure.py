"""``paraforge configure``: compose params.yaml from the groups in configs/."""

from __future__ import annotations

from pathlib import Path

import typer

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def configure(
    overrides: list[str] = typer.Argument(
        None,
        metavar="[GROUP=CHOICE | KEY=VALUE]...",
        help="what to choose, e.g. corpus=tatoeba translate.beam=4",
    ),
    configs: Path = typer.Option(Path("configs"), help="directory of the groups"),
    output: Path = typer.Option(Path("params.yaml"), help="file to write"),
    show: bool = typer.Option(False, "--show", help="print instead of writing"),
    groups: bool = typer.Option(False, "--groups", help="list the groups and their choices"),
) -> None:
    """Compose params.yaml from the groups in configs/, check every value, and write it.

    The default is the embedded sample. Anything that is not named goes back to its default.

    \b
    Examples:
      paraforge configure                                      the embedded sample
      paraforge configure corpus=tatoeba translation=small     another bitext, another model
      paraforge configure corpus=my translate.beam=4           your own configs/corpus/my.yaml
      paraforge configure --groups                             what there is to choose from
    """
    from paraforge.configuration import load_parameters
    from paraforge.configuration.composition import choices, compose
    from paraforge.configuration.inputs import INPUTS, link_inputs
    from paraforge.files import atomic_path

    if groups:
        for group, names in choices(configs).items():
            typer.echo(f"{group}: {', '.join(names)}")
        return
    text = compose(configs, overrides or [])
    if show:
        typer.echo(text, nl=False)
        return
    with atomic_path(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if (output.parent / "dvc.yaml").is_file():
        link_inputs(load_parameters(output), root=output.parent / INPUTS)
    typer.echo(f"{output} written. Run 'dvc repro' next; it runs only what this changes.")
