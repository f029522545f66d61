"""``paraforge summary``: show the result of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.interface.cli.console import on_terminal, rendered

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

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
    typer.echo(rendered(lambda console: show(gathered, console), on_terminal(), PLAIN_WIDTH))


def show(summary: Summary, console: Console) -> None:
    """Print a summary: the description of the corpus, without the parts for readers of the files."""
    from rich.markdown import Markdown
    from rich.padding import Padding

    from paraforge.corpus.publication.card import describe
    from paraforge.corpus.publication.summary import suggestions

    begin, *sections = describe(summary.root / "data" / "corpus").split("\n## ")
    shown = [begin, *(f"## {one}" for one in sections if one.partition("\n")[0] in _SECTIONS)]
    console.print(Markdown("\n\n".join(shown).partition("\n")[2], hyperlinks=False))
    for title, body in (("Translation", _translation(summary)), ("Where it is", _places(summary))):
        if body is not None:
            console.print(f"\n[bold]{title}[/]")
            console.print(Padding(body, (0, 0, 1, 2)))
    if summary.later:
        console.print(
            f"[yellow]These stages ran again after the corpus was published: {', '.join(summary.later)}. "
            "Their figures are left out. Run 'dvc repro' to update the corpus.[/]\n"
        )
    console.print("[bold]What to try next[/]")
    for purpose, command in suggestions(summary):
        # Text for copying is not wrapped.
        console.print(f"  {_escaped(purpose)}:\n      [cyan]{_escaped(command)}[/]", soft_wrap=True)
    console.print()


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(" ".join(text.split()))


def _translation(summary: Summary) -> str | None:
    parts = []
    bleu, chrf = summary.get("nmt", "bleu"), summary.get("nmt", "chrf")
    if bleu is not None:
        chrf_text = f", chrF [bold]{chrf:.1f}[/]" if chrf is not None else ""
        parts.append(f"BLEU [bold]{bleu:.1f}[/]{chrf_text} on held-out pairs")
    engine, beam = summary.get("translate", "engine"), summary.get("translate", "beam")
    if engine and engine != "none":
        parts.append(f"{engine}, beam {beam}" if beam else str(engine))
    rate = summary.get("translate", "sentences_per_second")
    if rate:
        parts.append(f"{rate:,.0f} sentences/s")
    if not parts:
        return None
    text = "; ".join(parts)
    if engine == "fake":
        text += "\n[yellow]The engine 'fake' does not translate: this is a dry run, not a corpus.[/]"
    return text


def _places(summary: Summary) -> RenderableType:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    files = len(summary.corpus.files)
    size = f"{files:,} Parquet {'file' if files == 1 else 'files'}, {summary.megabytes:,.1f} MB"
    corpus = _escaped(str(summary.root / "data" / "corpus"))
    table.add_row("corpus", f"{corpus}  ({size}; with _README.md and _manifest.json)")
    table.add_row(
        "rejected", f"{_escaped(str(summary.root / 'data' / 'rejected'))}  (each row with its reason)"
    )
    seconds = summary.seconds
    if seconds:
        told = ", ".join(f"{stage} {_duration(spent)}" for stage, spent in seconds.items())
        table.add_row("time", f"{_duration(sum(seconds.values()))}: {told}")
    return table


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
