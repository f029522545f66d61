"""``paraforge export-corpus``: a published corpus as text."""

from __future__ import annotations

from pathlib import Path

import typer


def export_corpus(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    output: Path = typer.Argument(metavar="OUTPUT", help="file to write, .gz: compressed; - is the terminal"),
    form: str | None = typer.Option(
        None, "--format", "-f", help="paranmt or jsonl; by default jsonl where OUTPUT ends so, else paranmt"
    ),
    columns: str = typer.Option("", "--columns", help="of jsonl, e.g. reference,translation; all by default"),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
    spreadsheet: bool = typer.Option(
        False, "--safe-for-spreadsheets", help="paranmt: an apostrophe before texts that look like formulas"
    ),
) -> None:
    """Write a published corpus as text for other programs.

    paranmt is the form of the released ParaNMT corpora: reference, translation and paraphrase score,
    separated by tabs, without a header. 'paraforge configure corpus=paranmt-tsv' reads it. jsonl has an
    object a line. Rejected pairs are a corpus of their own: data/rejected.

    \b
    Examples:
      paraforge export-corpus data/corpus paraphrases.tsv.gz
      paraforge export-corpus data/corpus pairs.jsonl --columns reference,translation,paraphrase_score
      paraforge export-corpus data/corpus - | head
    """
    from paraforge.base.errors import InputError
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.cli.outputs import FileKind, check_output_file, text_lines
    from paraforge.interface.query.export import export_text, text_format
    from paraforge.interface.query.output import check_spreadsheet

    chosen = form or text_format(output)
    if chosen not in ("paranmt", "jsonl"):
        raise InputError(f"no format '{chosen}'", remedy="There are paranmt and jsonl.")
    check_spreadsheet(chosen, spreadsheet, kinds=["paranmt"])
    names = [name.strip() for name in columns.split(",") if name.strip()]
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
        typer.echo(f"in {changed:,} texts a tab or line end became a blank", err=True)
    if target is not None:
        typer.echo(f"{output}: {rows:,} pairs", err=True)
