"""``paraforge annotate``: grade a sample of a corpus in the browser, and report the grades."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.logs import counted
from paraforge.interface.cli.settings import HOST, announcer, check_output, group

if TYPE_CHECKING:
    from paraforge.interface.annotation.results import Report

DATABASE = Path("annotations.sqlite")


annotate = group("Grade pairs by hand (ParaNMT-50M, Table 3). See query.md.")


@annotate.command()
def serve(
    corpus: Path | None = typer.Argument(
        None,
        metavar="CORPUS",
        help="directory of a published corpus; not needed to continue with an existing database",
    ),
    database: Path = typer.Option(DATABASE, "--database", "-d", help="file for the answers"),
    count: int | None = typer.Option(
        None, "--count", "-n", min=1, max=100_000, help="pairs per band; 100 by default"
    ),
    seed: int | None = typer.Option(None, help="random seed; 1 by default"),
    kept_only: bool = typer.Option(
        False,
        "--kept-only",
        help="leave out the pairs in data/rejected next to the corpus (most pairs with low scores)",
    ),
    host: str = HOST,
    port: int = typer.Option(8377, min=0, max=65535, help="port to listen on; 0: any free port"),
) -> None:
    """Draw pairs from each score band, and serve the page on which people grade them.

    The first call draws the pairs and writes the database; later calls continue with it. Every answer is
    saved immediately.

    \b
    Examples:
      paraforge annotate serve data/corpus
      paraforge annotate serve data/corpus -n 20 --seed 7 -d pilot.sqlite
      paraforge annotate serve -d pilot.sqlite --port 9000
    """
    from paraforge.corpus.statistics.counts import BANDS
    from paraforge.interface.annotation.store import open_evaluation
    from paraforge.interface.web.serving import require_packages, serve_app

    # Checked before anything is drawn.
    require_packages()
    if not database.exists():
        check_output(database, force=False)
    store, new = open_evaluation(corpus, database, count, seed, False if kept_only else None)
    draw = store.draw
    counts = [sum(pair.band == band for pair in draw.pairs) for band in range(len(BANDS))]
    action = "drew" if new else "continuing with"
    typer.echo(
        f"{database}: {action} {counted(len(draw.pairs), 'pair')} from {draw.name}, seed {draw.seed}",
        err=True,
    )
    for band, count, figures in zip(BANDS, counts, draw.bands, strict=True):
        if count < draw.per_band:
            typer.echo(f"  band {band} has only {counted(figures.pairs, 'pair')}; all were drawn", err=True)

    from paraforge.interface.annotation.server import create_app

    permission, on_stop = "read the pairs and give answers", "; run the command again to continue"
    announce = announcer(host, "Grade", permission, on_stop)
    serve_app(partial(create_app, store), host, port, announce)
    graded = counted(len(store.judgments()), "answer")
    typer.echo(f"{database}: {graded}. Next: paraforge annotate report {database}", err=True)


@annotate.command()
def report(
    database: Path = typer.Argument(DATABASE, metavar="DATABASE", help="file with the answers"),
) -> None:
    """Show Table 3 (pairs, trigram overlap, grades by band), agreement, and the number of strong paraphrases.

    \b
    Examples:
      paraforge annotate report
      paraforge annotate report pilot.sqlite
    """
    from paraforge.interface.annotation.results import build_report
    from paraforge.interface.annotation.store import AnnotationStore

    typer.echo("\n".join(report_lines(build_report(AnnotationStore(database)))))


def report_lines(report: Report) -> list[str]:
    """Print the report as text."""
    from paraforge.base.markdown import text_table
    from paraforge.interface.annotation.results import LEAST_ANSWERS
    from paraforge.interface.query.pairs import one_line

    graders = ", ".join(f"{name} ({graded:,})" for name, graded in report.graded.items())
    lines = [
        one_line(report.draw.name),
        one_line(report.draw.signature),
        f"seed {report.draw.seed}; graded by {graders or 'nobody yet'}",
    ]
    header = ["score", "pairs", "trigram overlap", "graded", "para. 1", "2", "3", "fluency 1", "2", "3"]
    rows = []
    for row in report.table:
        overlap = "-" if row.overlap_3_mean is None else f"{row.overlap_3_mean:.2f} ± {row.overlap_3_sd:.2f}"
        grades = [f"{count:.4g}" if row.graded else "-" for count in (*row.paraphrase, *row.fluency)]
        rows.append([row.band, f"{row.pairs:,}", overlap, f"{row.graded}/{row.drawn}", *grades])
    lines += ["", "Grades by band", *text_table(header, rows)]
    if report.agreements:
        header = ["annotators", "question", "pairs", "equal grades", "kappa", "linear kappa"]
        rows = []
        for pair in report.agreements:
            values = (pair.agreement, pair.kappa, pair.weighted_kappa)
            figures = ["-" if value is None else f"{value:.2f}" for value in values]
            rows.append([f"{pair.first} and {pair.second}", pair.question, str(pair.pairs), *figures])
        lines += ["", "Agreement", *text_table(header, rows, left=2)]
    strong = f"too few answers; grade at least {LEAST_ANSWERS} pairs in every band"
    if (estimate := report.strong) and estimate.has_enough_answers:
        strong = f"{estimate.pairs:,.0f} ± {estimate.standard_error:,.0f} (standard error of sampling)"
        if not estimate.is_known:
            strong = f"too uncertain, {strong}; grade more pairs, or draw more (--count)"
    where = "the corpus and its rejected pairs" if len(report.draw.manifests) > 1 else "the corpus"
    return [*lines, "", f"Strong paraphrases (grade 3) in {where}: {strong}"]
