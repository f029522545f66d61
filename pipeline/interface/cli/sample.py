"""``paraforge sample``: pairs drawn at random from a published corpus, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.logs import counted
from paraforge.interface.cli.console import on_terminal, rendered, text_width
from paraforge.interface.cli.spelling import SPREADSHEET

if TYPE_CHECKING:
    from paraforge.interface.query.drawn_pairs import Sample


_TEXTS = ("reference", "translation")


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
    from paraforge.interface.cli.outputs import check_output_file, table, text_lines, write_or_print
    from paraforge.interface.query.drawn_pairs import parse_band, sample_pairs
    from paraforge.interface.query.output import (
        TABLE,
        check_spreadsheet,
        chosen_format,
        render_table,
        write_rows,
    )
    from paraforge.interface.query.statement import Rows

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
