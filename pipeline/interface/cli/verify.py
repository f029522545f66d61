"""``paraforge verify``: check a published corpus against its manifest."""

from __future__ import annotations

from pathlib import Path

import typer


def verify(
    corpora: list[Path] = typer.Argument(metavar="CORPUS", help="directories of corpora and models"),
    workers: int = typer.Option(0, min=0, help="threads; 0 is one per core"),
) -> None:
    """Check published corpora and models: files, checksums; of a corpus also rows, columns, counts.

    With data/corpus the rejected pairs next to it, data/rejected, are checked too, and whether both are of
    the same run. Exits with 0 only if all of it holds; otherwise with 2, and every problem is
    listed with its file and what to do.

    \b
    Examples:
      paraforge verify data/corpus
      paraforge verify published/v1 models/nmt
    """
    from paraforge.base.errors import InputError
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.base.shards.resources import available_cores
    from paraforge.corpus.publication.verification import counterpart
    from paraforge.corpus.publication.verification import verify as check
    from paraforge.interface.query.model_files import is_model, verify_model

    failed = False
    models = [path for path in corpora if is_model(path)]
    for model in models:
        problems = verify_model(model)
        for problem in problems:
            typer.echo(str(problem), err=True)
        failed = failed or bool(problems)
        sound = _counted(len(problems), "problem") if problems else "sound: every file is as it was written"
        typer.echo(f"{model}: {sound}", err=bool(problems))
    corpora = [path for path in corpora if path not in models]
    others = [other for corpus in corpora if (other := counterpart(corpus)) is not None]
    with graceful_interrupts():
        for corpus in {path.resolve(): path for path in [*others, *corpora]}.values():
            outcome = check(corpus, workers or available_cores())
            for problem in outcome.problems:
                typer.echo(str(problem), err=True)
            if outcome.problems or outcome.manifest is None:
                failed = True
                typer.echo(f"{corpus}: {_counted(len(outcome.problems), 'problem')}", err=True)
            else:
                manifest = outcome.manifest
                files = _counted(len(manifest.files), "file")
                typer.echo(f"{corpus}: sound: {manifest.rows:,} rows in {files}")
                typer.echo(f"  {manifest.signature}")
    if failed:
        raise typer.Exit(InputError.exit_code)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
