"""``export-corpus``, ``merge``, ``push`` and ``verify``: published corpora, to other places."""

import re
from pathlib import Path

import typer

from paraforge.base.errors import InputError, describing
from paraforge.base.files import DIGESTS, check_digests, read_json
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.logs import counted
from paraforge.interface.cli.outputs import (
    CORPUS_PART,
    GROUPS,
    MERGED_CORPUS,
    FileKind,
    check_output_directory,
    check_output_file,
    text_lines,
)
from paraforge.translation.models.model import MODEL_FILE, check_files


def export_corpus(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    output: Path | None = typer.Argument(
        None, metavar="OUTPUT", help="file to write, .gz: compressed; - is the terminal"
    ),
    directory: Path | None = typer.Option(
        None, "--output", "-o", metavar="DIR", help="write a corpus: a directory with manifest and card"
    ),
    where: str = typer.Option("", help='of a directory, a condition in SQL, e.g. "paraphrase_score > 0.8"'),
    form: str | None = typer.Option(
        None,
        "--format",
        "-f",
        help="of a file paranmt or jsonl, by default what its name says, or paranmt; of a directory parquet "
        "(default), jsonl, csv or tsv",
    ),
    columns: list[str] = typer.Option(
        [], "--columns", help="of jsonl and of a directory, e.g. reference,translation; all by default"
    ),
    groups: bool = typer.Option(
        False, "--groups", help="of a directory, a row for each group of pairs that say the same"
    ),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT or DIR"),
    spreadsheet: bool = typer.Option(
        False,
        "--safe-for-spreadsheets",
        help="paranmt, csv, tsv: an apostrophe before texts that look like formulas",
    ),
) -> None:
    """Write a published corpus as text for other programs, or part of it as a corpus of its own.

    paranmt is the form of the released ParaNMT corpora: reference, translation and paraphrase score,
    separated by tabs, without a header. 'paraforge configure corpus=paranmt-tsv' reads it. jsonl has an
    object a line. Rejected pairs are a corpus of their own: data/rejected.

    With --groups each row is the list of the sentences of a group, the number of its pairs and their mean
    score: for trainers with several positives, and to read.

    With --output DIR source, line and rank are always written; the signature has the condition, and
    manifest and card count the pairs that it leaves out.

    \b
    Examples:
      paraforge export-corpus data/corpus paraphrases.tsv.gz
      paraforge export-corpus data/corpus pairs.jsonl --columns reference,translation,paraphrase_score
      paraforge export-corpus data/corpus - | head
      paraforge export-corpus data/corpus --where "paraphrase_score > 0.8" -o data/best
      paraforge export-corpus data/corpus --columns reference,translation --format csv -o pairs
      paraforge export-corpus data/corpus --groups -o data/groups
    """
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.query.output import check_spreadsheet
    from paraforge.interface.query.part import FORMATS, export_part, export_text, text_format

    if (output is None) == (directory is None):
        raise InputError("one output is wanted", remedy="Give a file, or --output DIR.")
    if groups:
        if directory is None or where or form or columns:
            raise InputError("--groups goes with --output DIR alone", remedy="Leave the other options out.")
        from paraforge.interface.query.groups import export_groups  # numba takes half a second

        check_output_directory(directory, force, GROUPS)
        with graceful_interrupts():
            number, pairs = export_groups(open_published(corpus), directory)
        typer.echo(
            f"{directory}: {counted(number, 'group')} of {counted(pairs, 'pair')}",
            err=True,
        )
        return
    names = [name.strip() for name in ",".join(columns).split(",") if name.strip()]
    if directory is not None:
        kind = form or FORMATS[0]
        if kind not in FORMATS:
            raise InputError(f"no format '{kind}' of a directory", remedy=f"There are {', '.join(FORMATS)}.")
        check_spreadsheet(kind, spreadsheet)
        check_output_directory(directory, force, CORPUS_PART)
        with graceful_interrupts():
            part = export_part(open_published(corpus), directory, where, names, kind, spreadsheet)
        typer.echo(f"{directory}: {counted(part.rows, 'pair')}, {part.signature}", err=True)
        return
    assert output is not None
    if where:
        raise InputError("--where is for --output DIR", remedy="'paraforge query' writes a file.")
    chosen = form or text_format(output)
    if chosen not in ("paranmt", "jsonl"):
        raise InputError(f"no format '{chosen}'", remedy="There are paranmt and jsonl.")
    check_spreadsheet(chosen, spreadsheet, kinds=["paranmt"])
    if names and chosen != "jsonl":
        raise InputError("--columns is for jsonl", remedy="ParaNMT's form has its three columns.")
    kinds: dict[str, FileKind] = {
        "paranmt": text_lines("pairs in ParaNMT's form", r"[^\t]*\t[^\t]*\t[-+.\de]*", repeated=True),
        "jsonl": text_lines("JSON lines", r"\{.*\}", repeated=True),
    }
    target = None if str(output) == "-" else output
    check_output_file(target, force, kinds[chosen])
    rows, changed = export_text(
        open_published(corpus), target, "jsonl" if chosen == "jsonl" else "paranmt", names, spreadsheet
    )
    if changed:
        typer.echo(f"in {counted(changed, 'text')} a tab or line end became a blank", err=True)
    if target is not None:
        typer.echo(f"{output}: {counted(rows, 'pair')}", err=True)


def merge(
    corpora: list[Path] = typer.Argument(metavar="CORPUS...", help="directories of published corpora"),
    output: Path = typer.Option(..., "--output", "-o", metavar="DIR", help="directory to write"),
    name: str = typer.Option("", help="of the corpus; by default the names of the others"),
    rename: bool = typer.Option(
        False, "--rename", help="call a source that an earlier corpus has, too, SOURCE.2, SOURCE.3, ..."
    ),
    group_score: float | None = typer.Option(
        None,
        min=0,
        max=1,
        help="score from which a translation makes a group; by default the corpora's highest",
    ),
    force: bool = typer.Option(False, "--force", help="replace DIR"),
) -> None:
    """Write the pairs of several published corpora as one corpus, with manifest and card.

    Scores and lineage stay as they are: score pairs anew where the corpora were scored otherwise, which is
    said. A pair that an earlier corpus has, too, is counted as rejected (in_earlier_corpus). Groups are found
    over all. What is held out stays held out: a pair that shares a sentence with a test pair joins its split.

    \b
    Examples:
      paraforge merge first/data/corpus second/data/corpus -o data/merged
      paraforge merge news/corpus dialogue/corpus captions/corpus --name "Three domains" -o three
    """
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.query.merge import merge_corpora

    if len(corpora) < 2:
        raise InputError("one corpus", corpora[0], remedy="Name two or more.")
    check_output_directory(output, force, MERGED_CORPUS)
    with graceful_interrupts():
        merged = merge_corpora(
            [open_published(corpus) for corpus in corpora], output, name, rename, group_score
        )
    said = [counted(merged.manifest.rows, "pair"), f"{merged.repeated:,} in an earlier corpus, too"]
    if merged.moved:
        said.append(f"{merged.moved:,} moved to a split, as they share a sentence with it")
    typer.echo(f"{output}: {'; '.join(said)}", err=True)


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
