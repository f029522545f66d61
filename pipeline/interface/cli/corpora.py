"""``summary``, ``push`` and ``verify``: published corpora."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.errors import InputError, describing
from paraforge.base.files import DIGESTS, check_digests, read_json
from paraforge.base.logs import counted
from paraforge.interface.cli.settings import render
from paraforge.translation.models.model import MODEL_FILE, check_files

if TYPE_CHECKING:
    from rich.console import Console

    from paraforge.corpus.publication.summary import Summary


# Width if the output is not a terminal.
PLAIN_WIDTH = 100
_SECTIONS = ("Counts", "Score bands", "Examples")


def summary(
    project: Path = typer.Argument(Path(), metavar="PROJECT", help="directory of the project"),
) -> None:
    """Show the result of the last run: counts, BLEU, score bands, examples, and where the corpus is.

    \b
    Examples:
      paraforge summary
      paraforge summary ~/another-project | less
    """
    from paraforge.corpus.publication.summary import load_summary

    gathered = load_summary(project)
    typer.echo(render(lambda console: show(gathered, console), PLAIN_WIDTH))


def show(summary: Summary, console: Console) -> None:
    """Print the parts of the corpus' card that describe the run, then figures of the run and suggestions."""
    from rich.markdown import Markdown

    from paraforge.corpus.publication.card import describe
    from paraforge.corpus.publication.summary import suggestions
    from paraforge.interface.query.pairs import shown_lines

    begin, *sections = describe(summary.root / "data" / "corpus").split("\n## ")
    shown = [
        begin.partition("\n")[2],
        *(f"## {section}" for section in sections if section.partition("\n")[0] in _SECTIONS),
    ]
    shown += ["## This run", *(f"* {line}" for line in _run(summary)), "## What to try next"]
    console.print(Markdown(shown_lines("\n\n".join(shown)), hyperlinks=False))
    for purpose, command in suggestions(summary):
        # Text for copying is not wrapped.
        console.print(f"  {' '.join(purpose.split())}:\n      {command}", markup=False, soft_wrap=True)


def _run(summary: Summary) -> Iterator[str]:
    """Yield lines of Markdown on the translation, the files and the time of a run."""
    from paraforge.base.markdown import code
    from paraforge.corpus.publication.summary import by_pivot
    from paraforge.interface.query.pairs import duration

    engine, beam = summary.get("translate", "engine"), summary.get("translate", "beam")
    rate = summary.get("translate", "sentences_per_second")
    for language, metrics in by_pivot(summary.metrics.get("nmt", {})).items():
        if (bleu := metrics.get("bleu")) is not None:
            second = "" if metrics.get("chrf") is None else f", chrF **{metrics['chrf']:.1f}**"
            yield f"BLEU **{bleu:.1f}**{second} on held-out pairs{f' from {language}' if language else ''}"
    if engine and engine != "none":
        yield f"{engine}{f', beam {beam}' if beam else ''}{f'; {rate:,.0f} sentences/s' if rate else ''}"
    pivots = by_pivot(summary.metrics.get("translate", {})).values()
    if any(metrics.get("engine") == "fake" for metrics in pivots):
        yield "**The engine 'fake' does not translate: this is a dry run, not a corpus.**"
    data = summary.root / "data"
    files = f"{counted(len(summary.corpus.files), 'Parquet file')}, {summary.corpus.bytes / 1e6:,.1f} MB"
    yield f"corpus: {code(str(data / 'corpus'))} ({files}; with _README.md and _manifest.json)"
    yield f"rejected: {code(str(data / 'rejected'))} (each row with its reason)"
    if seconds := summary.seconds:
        spent = ", ".join(f"{stage} {duration(time)}" for stage, time in seconds.items())
        yield f"time: {duration(sum(seconds.values()))}: {spent}"
    if summary.later:
        yield (
            f"**These stages ran again after the corpus was published: {', '.join(summary.later)}.** "
            "Their figures are left out. Run 'dvc repro' to update the corpus."
        )


def push(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    repository: str = typer.Argument(
        metavar="REPOSITORY", help="USER/NAME of the dataset; created if it does not exist"
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="verify the corpus, and print what would be uploaded"
    ),
    private: bool = typer.Option(False, "--private", help="upload to a private repository"),
) -> None:
    """Verify a published corpus and upload it to the Hugging Face Hub: files, card, manifest.

    Every source needs a stated license; check yourself whether it allows you to publish. Log in first with
    'hf auth login', or set HF_TOKEN. If the upload is interrupted, run the command again to resume.

    \b
    Examples:
      paraforge push data/corpus me/my-corpus --dry-run
      paraforge push data/corpus me/my-corpus --private
    """
    from paraforge.interface.query.push import check_push
    from paraforge.interface.query.push import push as upload

    manifest = check_push(corpus, repository)
    for source, license in sorted(manifest.licenses.items()):
        typer.echo(f"license of {source}: {license}")
    size = f"{counted(manifest.rows, 'pair')} in {counted(len(manifest.files), 'file')}"
    if dry_run:
        typer.echo(f"would upload {size} to {repository}")
        return
    url = upload(corpus, manifest, repository, private)
    typer.echo(f"{url}: {size}", err=True)


def verify(
    corpora: list[Path] = typer.Argument(metavar="CORPUS", help="directories of corpora and models"),
    workers: int = typer.Option(0, min=0, help="threads; 0: one per core"),
) -> None:
    """Check the files of published corpora and models, and the rows, columns and counts of corpora.

    For data/corpus, this also checks data/rejected next to it, and that both are from the same run. Exits
    with 0 if everything is correct. Otherwise it lists every problem with its file and what to do, and exits
    with 2.

    \b
    Examples:
      paraforge verify data/corpus
      paraforge verify published/v1 models/nmt
    """
    from paraforge.base.shards.resources import available_cores
    from paraforge.corpus.publication.verification import counterpart
    from paraforge.corpus.publication.verification import verify as check
    from paraforge.interface.query.pairs import one_line

    failed = False
    models = [path for path in corpora if is_model(path)]
    for model in models:
        problems = verify_model(model)
        for problem in problems:
            typer.echo(str(problem), err=True)
        failed = failed or bool(problems)
        result = counted(len(problems), "problem") if problems else "OK: no file has changed"
        typer.echo(f"{model}: {result}", err=bool(problems))
    corpora = [path for path in corpora if path not in models]
    others = [other for corpus in corpora if (other := counterpart(corpus)) is not None]
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
            typer.echo(f"{corpus}: OK: {counted(manifest.rows, 'row')} in {files}")
            typer.echo(f"  {one_line(manifest.signature)}")
    if failed:
        raise typer.Exit(InputError.exit_code)


_AGAIN = "Make the model again ('dvc repro'), or download it again."


def is_model(path: Path) -> bool:
    """Return whether a directory is a model's, that is, has digests or the index of a translation model."""
    return (path / DIGESTS).is_file() or (path / MODEL_FILE).is_file()


def verify_model(model: Path) -> list[InputError]:
    """Return everything wrong with the files that a model's digests or index name."""
    problems = check_digests(model) if (model / DIGESTS).is_file() else []
    for index in sorted(model.rglob(MODEL_FILE)):
        try:
            with describing(index, "damaged index"):
                check_files(index.parent, dict(read_json(index)["files"]))
        except InputError as error:
            problems.append(error)
    return [InputError(p.message, p.path or model, remedy=p.remedy or _AGAIN) for p in problems]
