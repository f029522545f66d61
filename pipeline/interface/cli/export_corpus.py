"""``paraforge export-corpus``: a published corpus as text, or part of it as a corpus."""

from pathlib import Path

import typer

from paraforge.base.logs import counted


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
    columns: str = typer.Option(
        "", "--columns", help="of jsonl and of a directory, e.g. reference,translation; all by default"
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
    from paraforge.base.errors import InputError
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.cli.outputs import (
        CORPUS_PART,
        GROUPS,
        FileKind,
        check_output_directory,
        check_output_file,
        text_lines,
    )
    from paraforge.interface.query.export import export_text, text_format
    from paraforge.interface.query.output import check_spreadsheet
    from paraforge.interface.query.part import FORMATS, export_part

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
    names = [name.strip() for name in columns.split(",") if name.strip()]
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
