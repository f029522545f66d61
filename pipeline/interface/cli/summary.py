"""``paraforge summary``: what a run gave, for a person to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.interface.cli.console import on_terminal, rendered

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from paraforge.corpus.publication.summary import Summary


# Where the output is no terminal.
PLAIN_WIDTH = 100
_BAR = 24
# With words next to it.
_SHORT_BAR = 16


def summary(
    project: Path = typer.Argument(Path(), metavar="PROJECT", help="directory of the project"),
) -> None:
    """Show what the last run gave: counts in and out, BLEU, score bands, ten pairs, where the corpus is.

    \b
    Examples:
      paraforge summary
      paraforge summary ~/another-project | less
    """
    from paraforge.corpus.publication.summary import load_summary

    gathered = load_summary(project)
    typer.echo(rendered(lambda console: show(gathered, console), on_terminal(), PLAIN_WIDTH))


def show(summary: Summary, console: Console) -> None:
    """Print a summary."""
    from rich.padding import Padding

    from paraforge.corpus.publication.summary import suggestions
    from paraforge.corpus.publication.verdict_words import verdict_words

    counts = summary.corpus.counts
    console.print()
    console.rule(f"[bold]{_escaped(summary.corpus.name)}", style="cyan")
    console.print(
        f"\n[bold cyan]{counts.kept:,}[/] paraphrase pairs from [bold]{counts.rows_in:,}[/] rows "
        f"of {_listed(sorted(summary.corpus.sources))}.\n"
    )
    words = verdict_words(summary.corpus)
    for sentence in words.sentences:
        console.print(_escaped(sentence))
    for warning in words.warnings:
        console.print(f"[yellow]{_escaped(warning)}[/]")
    if words.sentences or words.warnings:
        console.print()
    for title, body in (
        ("Where the rows went", _fates(summary)),
        ("Translation", _translation(summary)),
        ("Paraphrase score", _bands(summary)),
        (f"{len(summary.examples)} pairs, drawn at random from all scores", _examples(summary)),
        ("Where it is", _places(summary)),
    ):
        if body is not None:
            console.print(f"[bold]{title}[/]")
            console.print(Padding(body, (0, 0, 1, 2)))
    if summary.later:
        console.print(
            f"[yellow]Stages ran again since this corpus was published; figures that may be theirs are left "
            f"out: {', '.join(summary.later)}. Run 'dvc repro' to make the corpus again.[/]\n"
        )
    # What a person may copy is not broken into lines.
    console.print("[bold]Signature[/]")
    console.print(f"  {_escaped(summary.corpus.signature)}\n", soft_wrap=True)
    console.print("[bold]What to try next[/]")
    for purpose, command in suggestions(summary):
        console.print(f"  {_escaped(purpose)}:\n      [cyan]{_escaped(command)}[/]", soft_wrap=True)
    console.print()


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(" ".join(text.split()))


def _listed(names: list[str], most: int = 6) -> str:
    shown = [_escaped(name) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most} more sources")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _bar(share: float, style: str, width: int = _BAR) -> str:
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    partial = " ▏▎▍▌▋▊▉"[rest].strip()
    # Something is never shown as nothing.
    return f"[{style}]{'█' * full + partial or ('▏' if share else '')}[/]"


def _grid() -> Any:
    from rich.table import Table

    return Table.grid(padding=(0, 2))


def _fates(summary: Summary) -> RenderableType:
    from paraforge.corpus.selection.reasons import explain_reasons

    explained = explain_reasons(summary.corpus.steps)
    counts = summary.corpus.counts
    table = _grid()
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=28)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, min_width=_SHORT_BAR)
    table.add_column(style="dim", min_width=16)
    rows = [("kept", counts.kept, "green", "")] if counts.kept else []
    rows += [
        (name, number, "yellow", explained.get(name, "")) for name, number in counts.rejected.most_common()
    ]
    rows += [
        ("failed", number, "red", f"not translated: {name}") for name, number in counts.failed.most_common()
    ]
    for name, number, style, text in rows:
        share = number / counts.rows_in if counts.rows_in else 0.0
        table.add_row(
            f"[{style}]{_escaped(name)}[/]",
            f"{number:,}",
            f"{share:.1%}",
            _bar(share, style, _SHORT_BAR),
            _escaped(text),
        )
    return table


def _translation(summary: Summary) -> RenderableType | None:
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


def _bands(summary: Summary) -> RenderableType | None:
    from paraforge.corpus.publication.summary import band_rows

    bands = list(band_rows(summary.get("publish", "bands")))
    if not bands:
        return None
    most = max(band["kept"] for _, band in bands) or 1
    table = _grid()
    for column in ("score", "kept", "", "trigram overlap", "of scored"):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    table.add_row("[dim]score[/]", "[dim]kept[/]", "", "[dim]trigram overlap[/]", "[dim]of scored pairs[/]")
    for name, band in bands:
        overlap = f"{band['kept_overlap_3']:.2f}" if band["kept"] else "-"
        table.add_row(
            _escaped(name),
            f"{band['kept']:,}",
            _bar(band["kept"] / most, "cyan"),
            overlap,
            f"{band['pairs']:,}",
        )
    return table


def _examples(summary: Summary) -> RenderableType | None:
    if not summary.examples:
        return None
    table = _grid()
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for pair in summary.examples:
        score = f"[bold cyan]{pair['paraphrase_score']:.2f}[/]"
        table.add_row(score, f"{_shortened(pair['reference'])}\n[green]{_shortened(pair['translation'])}[/]")
    return table


def _shortened(text: str | None, length: int = 160) -> str:
    words = " ".join((text or "").split())
    return _escaped(words if len(words) <= length else f"{words[: length - 1]}…")


def _places(summary: Summary) -> RenderableType:
    table = _grid()
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    files = len(summary.corpus.files)
    size = f"{files:,} Parquet {'file' if files == 1 else 'files'}, {summary.megabytes:,.1f} MB"
    corpus = _escaped(str(summary.root / "data" / "corpus"))
    table.add_row("corpus", f"{corpus}  ({size}; with _README.md and _manifest.json)")
    pivots = [f"{name} {counts.kept:,}" for name, counts in sorted(summary.corpus.pivots.items())]
    if pivots:
        table.add_row("pivots", ", ".join(pivots))
    held = [f"{name} {rows:,}" for name, rows in summary.corpus.splits.items()]
    if len(held) > 1:
        table.add_row("splits", ", ".join(held))
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
