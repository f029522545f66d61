"""``paraforge push``: a published corpus to the Hugging Face Hub."""

import re
from pathlib import Path

import typer

from paraforge.base.logs import counted


def push(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    repository: str = typer.Argument(metavar="REPOSITORY", help="USER/NAME of a dataset; made if need be"),
    dry_run: bool = typer.Option(False, "--dry-run", help="only show what would go; no network"),
    private: bool = typer.Option(False, "--private", help="make a new repository private"),
    licences_checked: bool = typer.Option(
        False, "--licences-checked", help="upload although a source's licence is unknown or forbids it"
    ),
    force: bool = typer.Option(False, "--force", help="upload beside files that are no corpus"),
) -> None:
    """Verify a published corpus and upload it to the Hugging Face Hub: files, card, manifest.

    The card becomes README.md. The upload is one commit; what the Hub has already is not sent again, so that
    the same command resumes one that was cut off. Every source needs a licence that allows changed
    copies. Log in first: 'hf auth login', or HF_TOKEN.

    \b
    Examples:
      paraforge push data/corpus me/my-corpus --dry-run
      paraforge push data/corpus me/my-corpus --private
    """
    from paraforge.base.errors import InputError
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.interface.query.push import plan_push
    from paraforge.interface.query.push import push as upload

    part = r"\w[\w.-]{0,95}(?<![.-])"
    if not re.fullmatch(rf"(?!.*(--|\.\.)){part}/{part}(?<!\.git)", repository, re.ASCII):
        remedy = "E.g. me/my-corpus: letters, digits, '.', '-' and '_'."
        raise InputError(f"'{repository}' is not USER/NAME", remedy=remedy)
    planned = plan_push(corpus, licences_checked)
    pairs = counted(planned.manifest.rows, "pair")
    what = f"{counted(len(planned.files), 'file')}, {planned.bytes / 1e6:,.1f} MB, {pairs}"
    if dry_run:
        for name, path in planned.files.items():
            typer.echo(f"{path.stat().st_size:>14,}  {name}")
        for source, licence in sorted(planned.manifest.licences.items()):
            typer.echo(f"licence of {source}: {licence}")
        typer.echo(f"{repository}: would get {what}")
        return
    with graceful_interrupts():
        url = upload(planned, repository, private, force)
    typer.echo(f"{url}: {what}", err=True)
