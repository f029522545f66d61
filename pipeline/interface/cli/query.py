"""``query``, ``sample`` and ``browse``: the pairs of a published corpus, by SQL, at random, by scores."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.errors import InputError
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.logs import counted
from paraforge.interface.cli.console import (
    ALLOW_HOST,
    HOST,
    OPEN,
    listening,
    on_terminal,
    rendered,
    text_width,
)
from paraforge.interface.cli.outputs import check_output_file, table, text_lines, write_or_print
from paraforge.interface.cli.settings import SPREADSHEET

if TYPE_CHECKING:
    from paraforge.interface.query.drawn_pairs import Sample


# What a table shows; everything goes to --output.
SHOWN_ROWS = 1_000
WIDTH = 160
_TEXTS = ("reference", "translation")


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
    lexicon, where these are next to it; of shards such as data/scored corpus alone. DESCRIBE corpus lists the
    columns. See docs/query.md.

    \b
    Examples:
      paraforge query data/corpus "SELECT count(*) FROM corpus WHERE paraphrase_score > 0.8"
      paraforge query data/corpus "SELECT rejected, count(*) FROM rejected GROUP BY 1 ORDER BY 2 DESC"
      paraforge query data/corpus "SELECT reference, translation FROM corpus WHERE overlap_3 < 0.2" -o far.tsv
    """

    from paraforge.corpus.publication.datasets import neighbours, open_published, open_shards
    from paraforge.corpus.publication.manifest import KEPT
    from paraforge.interface.query.database import open_database, run_statement
    from paraforge.interface.query.output import (
        TABLE,
        check_spreadsheet,
        chosen_format,
        render_table,
        write_rows,
    )

    kind = chosen_format(form, output)
    check_spreadsheet(kind, spreadsheet)
    check_output_file(output, force)
    shards = open_shards(corpus)
    named = shards or open_published(corpus)
    views, missing = ({}, {}) if shards else neighbours(named)
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


def sample(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    count: int = typer.Option(20, "--count", "-n", min=1, help="pairs"),
    band: str | None = typer.Option(
        None, help="scores, e.g. 0.6-0.8: above the first number, not above the second"
    ),
    score: str = typer.Option("paraphrase_score", help="column that the band is of"),
    where: str | None = typer.Option(None, help="a condition in SQL, e.g. \"source = 'tatoeba'\""),
    seed: int = typer.Option(1, min=0, help="the same seed draws the same pairs"),
    form: str | None = typer.Option(
        None, "--format", "-f", help="pairs, table, csv, tsv, json, jsonl, parquet"
    ),
    output: Path | None = typer.Option(None, "--output", "-o", help="file to write; by default the terminal"),
    force: bool = typer.Option(False, "--force", help="replace the file of --output"),
    spreadsheet: bool = SPREADSHEET,
) -> None:
    """Show pairs drawn at random, uniformly and without replacement.

    \b
    Examples:
      paraforge sample data/corpus
      paraforge sample data/corpus --band 0.6-0.8 -n 20
      paraforge sample data/rejected --where "rejected = 'length'"
      paraforge sample data/corpus -n 1000 --seed 7 -o to-annotate.tsv
    """
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.query.database import Rows
    from paraforge.interface.query.drawn_pairs import parse_band, sample_pairs
    from paraforge.interface.query.output import (
        TABLE,
        check_spreadsheet,
        chosen_format,
        render_table,
        write_rows,
    )

    kind = "pairs" if form == "pairs" else chosen_format(form, output, "pairs")
    check_spreadsheet(kind, spreadsheet)
    text = kind in ("pairs", TABLE)
    shown = text_lines("a table of pairs", r"\|.*\||row 1|no rows.*| +\w+ +reference +translation .*")
    check_output_file(output, force, shown if text else table("pairs", kind, ["source", "line", *_TEXTS]))
    dataset = open_published(corpus)
    drawn = sample_pairs(dataset, count, seed, parse_band(band) if band else None, score, where)
    rows = Rows(drawn.pairs.schema, iter(drawn.pairs.to_batches()))
    terminal = on_terminal(output)
    if text:
        drawing = (
            render_pairs(drawn, score, terminal)
            if kind == "pairs"
            else render_table(rows, count, text_width(terminal), terminal)[0]
        )
        write_or_print(drawing, output)
    else:
        write_rows(rows, output, kind, spreadsheet)
    typer.echo(f"{drawn.pairs.num_rows:,} of {counted(drawn.population, 'pair')}, seed {seed}", err=True)


def render_pairs(drawn: Sample, score: str, terminal: bool) -> str:
    """Reference and translation side by side; words that the other side lacks are marked on a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from paraforge.interface.query.output import marked_words, one_line

    names = drawn.pairs.column_names
    shown_score = score if score in names else None
    fate = [name for name in ("rejected", "failed") if name in names]
    table = Table(
        box=box.SIMPLE_HEAD,
        expand=terminal,
        header_style="bold cyan",
        padding=(0, 1),
        show_lines=False,
        leading=1,
    )
    table.add_column("score" if score == "paraphrase_score" else score, justify="right", no_wrap=True)
    table.add_column("reference", ratio=1, overflow="fold")
    table.add_column("translation", ratio=1, overflow="fold")
    table.add_column("overlap", justify="right", no_wrap=True)
    table.add_column("from", style="dim", overflow="fold")
    for pair in drawn.pairs.to_pylist():
        sides = [one_line(pair[name] or "") for name in _TEXTS]
        texts = []
        for words in marked_words(*sides):
            text = Text()
            for piece, differs in words:
                text.append(piece, "bold green" if differs and terminal else "")
            texts.append(text)
        value = None if shown_score is None else pair[shown_score]
        overlap = pair.get("overlap_3")
        reason = next((str(pair[name]) for name in fate if pair[name]), "")
        lineage = f"{pair['source']}:{pair['line']}" + (f"\n{reason}" if reason else "")
        table.add_row(
            "-" if value is None else f"{value:.2f}",
            *texts,
            "-" if overlap is None else f"{overlap:.2f}",
            Text("\n".join(map(one_line, lineage.split("\n")))),
        )
    return rendered(lambda console: console.print(table), terminal)


def browse(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    kept_only: bool = typer.Option(
        False, "--kept-only", help="leave out data/rejected next to the corpus, which has the rejected pairs"
    ),
    host: str = HOST,
    port: int = typer.Option(8378, min=0, max=65535, help="port to listen on; 0 is any free one"),
    allow_host: list[str] = ALLOW_HOST,
    open_browser: bool = OPEN,
) -> None:
    """Serve a page with histograms of all scores, whose handles show what other thresholds would keep.

    The page shows kept and rejected pairs side by side, and the section 'select' of params.yaml for what is
    on screen. The first call prepares counts, kept in ~/.cache/paraforge/browse. See docs/query.md.

    \b
    Examples:
      paraforge browse data/corpus
      paraforge browse data/corpus --port 9000 --open
    """
    from paraforge.interface.web.serving import require_packages, serve_app

    require_packages()
    from paraforge.corpus.publication.datasets import open_publication
    from paraforge.interface.browse.browser import Browser
    from paraforge.interface.browse.prepared import prepare
    from paraforge.interface.browse.server import create_app
    from paraforge.interface.query.database import open_database

    at = listening(host, port, allow_host, open_browser, "Browse", "read the pairs")
    datasets = open_publication(corpus, not kept_only)
    if not sum(dataset.rows for dataset in datasets):
        raise InputError("there are no pairs to look at", corpus)
    with graceful_interrupts():
        prepared = prepare(datasets)
    with open_database(datasets) as connection:
        browser = Browser(prepared, connection)
        # Loops are compiled before anybody waits for them.
        browser.count(browser.default)
        serve_app(partial(create_app, browser), at)
