"""``paraforge summary``: show the result of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.logs import counted
from paraforge.interface.cli.console import rendered

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
    typer.echo(rendered(lambda console: show(gathered, console), PLAIN_WIDTH))


def show(summary: Summary, console: Console) -> None:
    """Print the parts of the corpus' card that describe the run, then figures of the run and suggestions."""
    from rich.markdown import Markdown

    from paraforge.corpus.publication.card import describe
    from paraforge.corpus.publication.summary import suggestions
    from paraforge.interface.query.pairs import shown_lines

    begin, *sections = describe(summary.root / "data" / "corpus").split("\n## ")
    shown = [
        begin.partition("\n")[2],
        *(f"## {one}" for one in sections if one.partition("\n")[0] in _SECTIONS),
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
    for language, one in by_pivot(summary.metrics.get("nmt", {})).items():
        if (bleu := one.get("bleu")) is not None:
            second = "" if one.get("chrf") is None else f", chrF **{one['chrf']:.1f}**"
            yield f"BLEU **{bleu:.1f}**{second} on held-out pairs{f' from {language}' if language else ''}"
    if engine and engine != "none":
        yield f"{engine}{f', beam {beam}' if beam else ''}{f'; {rate:,.0f} sentences/s' if rate else ''}"
    if any(one.get("engine") == "fake" for one in by_pivot(summary.metrics.get("translate", {})).values()):
        yield "**The engine 'fake' does not translate: this is a dry run, not a corpus.**"
    data = summary.root / "data"
    files = f"{counted(len(summary.corpus.files), 'Parquet file')}, {summary.corpus.bytes / 1e6:,.1f} MB"
    yield f"corpus: {code(str(data / 'corpus'))} ({files}; with _README.md and _manifest.json)"
    yield f"rejected: {code(str(data / 'rejected'))} (each row with its reason)"
    if seconds := summary.seconds:
        spent = ", ".join(f"{stage} {duration(one)}" for stage, one in seconds.items())
        yield f"time: {duration(sum(seconds.values()))}: {spent}"
    if summary.later:
        yield (
            f"**These stages ran again after the corpus was published: {', '.join(summary.later)}.** "
            "Their figures are left out. Run 'dvc repro' to update the corpus."
        )
