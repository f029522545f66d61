"""``paraforge verify``: check a published corpus against its manifest."""

from pathlib import Path

import typer

from paraforge.base.errors import InputError, describing
from paraforge.base.files import DIGESTS, check_digests, read_json
from paraforge.base.logs import counted
from paraforge.translation.models.model import MODEL_FILE, check_files


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
    from paraforge.interface.cli.verify import is_model, verify_model

    failed = False
    models = [path for path in corpora if is_model(path)]
    for model in models:
        problems = verify_model(model)
        for problem in problems:
            typer.echo(str(problem), err=True)
        failed = failed or bool(problems)
        sound = counted(len(problems), "problem") if problems else "sound: every file is as it was written"
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
                typer.echo(f"{corpus}: {counted(len(outcome.problems), 'problem')}", err=True)
            else:
                manifest = outcome.manifest
                files = counted(len(manifest.files), "file")
                typer.echo(f"{corpus}: sound: {counted(manifest.rows, 'row')} in {files}")
                typer.echo(f"  {manifest.signature}")
    if failed:
        raise typer.Exit(InputError.exit_code)


_AGAIN = "Make the model again ('dvc repro'), or fetch it again from where it came from."


def is_model(path: Path) -> bool:
    """Whether a directory is a model's: it has digests, or the index of a translation model."""
    return (path / DIGESTS).is_file() or (path / MODEL_FILE).is_file()


def verify_model(model: Path) -> list[InputError]:
    """All that is wrong with the files of a model, which its digests or its index name."""
    problems = check_digests(model) if (model / DIGESTS).is_file() else []
    for index in sorted(model.rglob(MODEL_FILE)):
        try:
            with describing(index, "damaged index"):
                check_files(index.parent, dict(read_json(index)["files"]))
        except InputError as error:
            problems.append(error)
    return [InputError(p.message, p.path or model, remedy=p.remedy or _AGAIN) for p in problems]
