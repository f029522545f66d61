"""``push`` and ``verify``: published corpora, checked and uploaded."""

import re
from pathlib import Path

import typer

from paraforge.base.errors import InputError, describing
from paraforge.base.files import DIGESTS, check_digests, read_json
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.logs import counted
from paraforge.translation.models.model import MODEL_FILE, check_files


def push(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    repository: str = typer.Argument(metavar="REPOSITORY", help="USER/NAME of a dataset; made if need be"),
    dry_run: bool = typer.Option(False, "--dry-run", help="only verify, and show what would be uploaded"),
    private: bool = typer.Option(False, "--private", help="upload to a private repository"),
) -> None:
    """Verify a published corpus and upload it to the Hugging Face Hub: files, card, manifest.

    Every source needs a stated licence; whether it allows this is yours to judge. The same command resumes
    an upload that was cut off. Log in first: 'hf auth login', or HF_TOKEN.

    \b
    Examples:
      paraforge push data/corpus me/my-corpus --dry-run
      paraforge push data/corpus me/my-corpus --private
    """
    from paraforge.interface.query.push import check_push
    from paraforge.interface.query.push import push as upload

    part = r"\w[\w.-]{0,95}(?<![.-])"
    if not re.fullmatch(rf"(?!.*(--|\.\.)){part}/{part}(?<!\.git)", repository, re.ASCII):
        remedy = "E.g. me/my-corpus: letters, digits, '.', '-' and '_'."
        raise InputError(f"'{repository}' is not USER/NAME", remedy=remedy)
    manifest = check_push(corpus)
    for source, licence in sorted(manifest.licences.items()):
        typer.echo(f"licence of {source}: {licence}")
    what = f"{counted(manifest.rows, 'pair')} in {counted(len(manifest.files), 'file')}"
    if dry_run:
        typer.echo(f"{repository}: would get {what}")
        return
    with graceful_interrupts():
        url = upload(corpus, manifest, repository, private)
    typer.echo(f"{url}: {what}", err=True)


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
    from paraforge.base.shards.resources import available_cores
    from paraforge.corpus.publication.verification import counterpart
    from paraforge.corpus.publication.verification import verify as check

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
