"""``query``, ``sample`` and ``browse``: show pairs from a published corpus by SQL, at random, or by
scores."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.base.shards.schema import TEXT_COLUMNS
from paraforge.interface.cli.settings import FORCE, HOST, OUTPUT, announcer, check_table, render, text_width

if TYPE_CHECKING:
    import duckdb

    from paraforge.corpus.publication.datasets import Dataset
    from paraforge.interface.query.pairs import Sample


SHOWN_ROWS = 1_000
WIDTH = 160


def query(
    corpus: Path = typer.Argument(metavar="CORPUS", help="published corpus, shards, or a Parquet file"),
    sql: str = typer.Argument(metavar="SQL", help="one query; - reads it from standard input"),
    output: Path | None = OUTPUT,
    force: bool = FORCE,
    count: int = typer.Option(
        SHOWN_ROWS, "--count", "-n", min=1, max=999_999, help="maximum number of rows to print"
    ),
    memory: str = typer.Option("600MB", help="memory limit for DuckDB; beyond it, temporary files are used"),
) -> None:
    """Query a published corpus with SQL (DuckDB). See query.md.

    The views are corpus, rejected (rejected and failed pairs) and lexicon, if these exist next to CORPUS.
    DESCRIBE corpus lists the columns. -o writes .parquet, .csv, .tsv, .json or .jsonl (text also with .gz).

    \b
    Examples:
      paraforge query data/corpus "SELECT count(*) FROM corpus WHERE paraphrase_score > 0.8"
      paraforge query data/corpus "SELECT rejected, count(*) FROM rejected GROUP BY 1 ORDER BY 2 DESC"
      paraforge query data/corpus "SELECT reference, translation FROM corpus WHERE overlap_3 < 0.2" -o far.tsv
    """
    from paraforge.interface.query.database import explain_errors, open_database, write_relation

    check_table(output, force)
    views, missing = _views(corpus)
    text = sys.stdin.read() if sql == "-" else sql
    remedy = f"Views: {', '.join(views)}. 'DESCRIBE corpus' lists its columns."
    for name, why in missing.items():
        if name in text:
            remedy = f"There is no view '{name}': {why}"
    with open_database(views, memory) as connection:
        with explain_errors(remedy):
            _check_single(connection.extract_statements(text))
            relation = connection.sql(_without_last_semicolon(text))
            if relation is None:
                raise InputError("the query is empty")
            if output is not None:
                written = write_relation(relation, output)
                typer.echo(f"{output}: {counted(written, 'row')}", err=True)
                return
            # Only the rows to show are computed, and one more if there is one.
            connection.execute("CREATE SCHEMA shown")  # whose tables SHOW TABLES does not list
            relation.limit(count + 1).create("shown.rows")
            shown = connection.table("shown.rows")
            typer.echo(_shown(shown.limit(count), count))
            is_cut = len(shown) > count
        if is_cut:
            more = f"first {counted(count, 'row')}; use --count to show more, --output FILE to write all"
            typer.echo(more, err=True)


def _check_single(statements: Sequence[duckdb.Statement]) -> None:
    """Raise InputError if there is a query before the last one, whose result nobody would see."""
    import duckdb

    if any(statement.type == duckdb.StatementType.SELECT for statement in statements[:-1]):
        raise InputError("several queries, and only the last result is shown", remedy="Run one at a time.")


def _without_last_semicolon(sql: str) -> str:
    """Return SQL without its last semicolon and the comments after it, where DuckDB has a syntax error."""
    import duckdb

    encoded = sql.encode()
    places = [place for place, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]
    if places and encoded[places[-1] :].startswith(b";"):
        return encoded[: places[-1]].decode()
    return sql


def _shown(relation: Any, rows: int) -> str:
    """Return a relation as DuckDB prints it."""
    from paraforge.interface.query.pairs import shown_lines

    drawn = io.StringIO()
    with contextlib.redirect_stdout(drawn):
        relation.show(max_width=text_width(WIDTH), max_rows=rows)
    return shown_lines(drawn.getvalue().rstrip())


def _views(corpus: Path) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Open the datasets of a query, by name. Also returns why other views are missing."""
    from paraforge.corpus.publication.datasets import (
        Dataset,
        neighbors,
        open_file,
        open_published,
        open_shards,
    )
    from paraforge.corpus.publication.manifest import KEPT

    if corpus.is_file():
        with open_file(corpus) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        return {KEPT: Dataset(KEPT, corpus.parent, [corpus.absolute()], rows, schema)}, {}
    shards = open_shards(corpus)
    published = shards or open_published(corpus)
    if not published.schema.names:
        raise InputError("the corpus has no rows", corpus)
    views, missing = ({}, {}) if shards else neighbors(published)
    views[KEPT] = published  # also if the path is of rejected pairs
    return views, missing


def sample(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    count: int = typer.Option(20, "--count", "-n", min=1, max=999_999, help="number of pairs"),
    band: str | None = typer.Option(None, help="only paraphrase scores in (LOW, HIGH], e.g. 0.6-0.8"),
    where: str | None = typer.Option(None, help="only rows that match this SQL condition"),
    seed: int = typer.Option(1, min=0, help="random seed"),
    output: Path | None = OUTPUT,
    force: bool = FORCE,
) -> None:
    """Show random pairs, drawn uniformly without replacement.

    \b
    Examples:
      paraforge sample data/corpus --band 0.6-0.8 -n 20
      paraforge sample data/rejected --where "rejected = 'length'"
      paraforge sample data/corpus -n 1000 --seed 7 -o to-annotate.tsv
    """
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.query.database import write_table
    from paraforge.interface.query.pairs import band_condition, sample_pairs

    check_table(output, force)
    dataset = open_published(corpus)
    conditions = [*([band_condition(band)] if band else []), *([where] if where else [])]
    drawn = sample_pairs(dataset, count, seed, conditions)
    if output is not None:
        write_table(drawn.pairs, output)
    else:
        typer.echo(render_pairs(drawn))
    typer.echo(f"{drawn.pairs.num_rows:,} of {counted(drawn.population, 'pair')}, seed {seed}", err=True)


def render_pairs(drawn: Sample) -> str:
    """Show reference and translation side by side. On a terminal, words that only one side has are marked."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from paraforge.interface.query.pairs import marked_words, one_line, shown_lines

    fate = [name for name in ("rejected", "failed") if name in drawn.pairs.column_names]
    table = Table(box=box.SIMPLE_HEAD, expand=sys.stdout.isatty(), header_style="bold cyan", leading=1)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("reference", ratio=1, overflow="fold")
    table.add_column("translation", ratio=1, overflow="fold")
    table.add_column("overlap", justify="right", no_wrap=True)
    table.add_column("from", style="dim", overflow="fold")
    for pair in drawn.pairs.to_pylist():
        sides = [one_line(pair[name] or "") for name in TEXT_COLUMNS]
        texts = []
        for words in marked_words(*sides):
            text = Text()
            for piece, differs in words:
                text.append(piece, "bold green" if differs else "")
            texts.append(text)
        score, overlap = pair.get("paraphrase_score"), pair.get("overlap_3")
        reason = next((str(pair[name]) for name in fate if pair[name]), "")
        lineage = f"{pair['source']}:{pair['line']}" + (f"\n{reason}" if reason else "")
        table.add_row(
            "-" if score is None else f"{score:.2f}",
            *texts,
            "-" if overlap is None else f"{overlap:.2f}",
            Text(shown_lines(lineage)),
        )
    return render(lambda console: console.print(table))


def browse(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    kept_only: bool = typer.Option(
        False, "--kept-only", help="leave out the rejected pairs in data/rejected next to the corpus"
    ),
    host: str = HOST,
    port: int = typer.Option(8378, min=0, max=65535, help="port to listen on; 0: any free port"),
) -> None:
    """Serve a page for choosing thresholds. Each score has a histogram with handles to move.

    The page shows the pairs that the current thresholds keep and reject, and the section 'select' for
    params.yaml. You can leave it open during 'dvc repro'. See query.md.

    \b
    Examples:
      paraforge browse data/corpus
      paraforge browse data/corpus --port 9000
    """
    from paraforge.interface.web.serving import require_packages, serve_app

    require_packages()
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.browse.server import create_app, reopening

    open_published(corpus)
    with contextlib.ExitStack() as stack:
        current = stack.enter_context(reopening(corpus, not kept_only))
        announce = announcer(host, "Browse", "read the pairs")
        serve_app(partial(create_app, current), host, port, announce)
