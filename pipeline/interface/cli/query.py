"""``paraforge query``: SQL over a published corpus."""

from pathlib import Path

import typer

from paraforge.base.logs import counted
from paraforge.interface.cli.spelling import SPREADSHEET

# What a table shows; everything goes to --output.
SHOWN_ROWS = 1_000
WIDTH = 160


def query(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    sql: str = typer.Argument(metavar="SQL", help="one query; - reads it from standard input"),
    form: str | None = typer.Option(
        None, "--format", "-f", help="table, csv, tsv, json, jsonl or parquet; by default the file's ending"
    ),
    output: Path | None = typer.Option(None, "--output", "-o", help="file to write; by default the terminal"),
    force: bool = typer.Option(False, "--force", help="replace the file of --output"),
    spreadsheet: bool = SPREADSHEET,
    count: int = typer.Option(SHOWN_ROWS, "--count", "-n", min=1, help="rows that a table shows at most"),
    memory: str = typer.Option("600MB", help="memory DuckDB may use; what is larger goes to temporary files"),
    threads: int = typer.Option(0, min=0, help="threads; 0 is one per core"),
    allow_files: bool = typer.Option(
        False, "--allow-files", help="let the statement read and write other files than the corpus"
    ),
) -> None:
    """Ask a published corpus in SQL (DuckDB).

    Views: corpus (the pairs of the directory that is named), rejected (rejected and failed pairs) and
    lexicon, where these are next to it. DESCRIBE corpus lists the columns. See docs/query.md.

    \b
    Examples:
      paraforge query data/corpus "SELECT count(*) FROM corpus WHERE paraphrase_score > 0.8"
      paraforge query data/corpus "SELECT rejected, count(*) FROM rejected GROUP BY 1 ORDER BY 2 DESC"
      paraforge query data/corpus "SELECT reference, translation FROM corpus WHERE overlap_3 < 0.2" -o far.tsv
    """
    import sys

    from paraforge.corpus.publication.datasets import neighbours, open_published
    from paraforge.corpus.publication.manifest import KEPT
    from paraforge.interface.cli.console import on_terminal, text_width
    from paraforge.interface.cli.outputs import check_output_file, table, text_lines, write_or_print
    from paraforge.interface.query.database import open_database
    from paraforge.interface.query.output import (
        TABLE,
        check_spreadsheet,
        chosen_format,
        render_table,
        write_rows,
    )
    from paraforge.interface.query.statement import run_statement

    kind = chosen_format(form, output)
    check_spreadsheet(kind, spreadsheet)
    check_output_file(output, force)
    named = open_published(corpus)
    views, missing = neighbours(named)
    views[KEPT] = named  # also where rejected pairs are named
    text = sys.stdin.read() if sql == "-" else sql
    with open_database(
        [], allow_files=allow_files, threads=threads, memory=memory, names=views
    ) as connection:
        rows = run_statement(connection, text, allow_files=allow_files, views=views, missing=missing)
        if kind == TABLE:
            check_output_file(output, force, text_lines("a table", r"\|.*\||row 1|no rows.*"))
        else:
            check_output_file(output, force, table("a table", kind, rows.schema.names))
        if kind == TABLE:
            terminal = on_terminal(output)
            shown, more = render_table(rows, count, text_width(terminal, WIDTH), terminal)
            write_or_print(shown, output)
            if more:
                typer.echo(
                    f"the first {counted(count, 'row')}; --count shows more, --output FILE writes all",
                    err=True,
                )
        else:
            written = write_rows(rows, output, kind, spreadsheet)
            if output is not None:
                typer.echo(f"{output}: {counted(written, 'row')}", err=True)
