"""``paraforge diff``: what differs between two published corpora."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.interface.cli.console import on_terminal, rendered
from paraforge.interface.cli.outputs import check_output_file, json_object, text_lines, write_or_print

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from paraforge.interface.query.diff import Difference, Moved


_BAR = 24


def diff(
    first: Path = typer.Argument(metavar="CORPUS_A", help="directory of a published corpus"),
    second: Path = typer.Argument(metavar="CORPUS_B", help="directory of another"),
    count: int = typer.Option(5, "--count", "-n", min=0, help="pairs shown of each kind"),
    seed: int = typer.Option(1, help="random seed for the examples"),
    form: str = typer.Option("text", "--format", "-f", help="text or json"),
    output: Path | None = typer.Option(None, "--output", "-o", help="file to write; by default the terminal"),
    force: bool = typer.Option(False, "--force", help="replace the file of --output"),
) -> None:
    """Say what differs: parameters, counts by reason and source, scores, and which pairs entered or left.

    A pair is known by its source, line and rank. Why a pair entered or left is taken from the rejected pairs
    next to the other corpus.

    \b
    Examples:
      paraforge diff yesterday/corpus data/corpus
      paraforge diff yesterday/corpus data/corpus -f json -o changes.json
    """
    from paraforge.interface.query.diff import as_dict, compare, open_side

    if form not in ("text", "json"):
        raise InputError(f"no format '{form}'", remedy="There are text and json.")
    if output is not None and output.suffix.lower() == ".json":
        form = "json"
    shown = text_lines("a comparison", "A  .*", "B  .*")
    kind = json_object("a comparison", "signatures", "parameters", "entered") if form == "json" else shown
    check_output_file(output, force, kind)
    difference = compare(open_side(first), open_side(second), count, seed)
    if form == "json":
        if output is not None:
            write_json(output, as_dict(difference))
        else:
            typer.echo(json.dumps(as_dict(difference), indent=2, ensure_ascii=False))
        return
    text = rendered(lambda console: show(difference, console), on_terminal(output))
    write_or_print(text, output)


def show(difference: Difference, console: Console) -> None:
    """Print a difference."""
    from rich.markup import escape

    console.print(f"[bold]A[/]  {escape(difference.signatures[0])}", soft_wrap=True)
    console.print(f"[bold]B[/]  {escape(difference.signatures[1])}\n", soft_wrap=True)
    if not difference.parameters:
        console.print("Both were made in the same way.\n")
    else:
        _heading(console, "How they were made")
        table = _table("", "A", "B")
        for key, values in difference.parameters.items():
            table.add_row(_text(key), *(_text(_shown(value)) for value in values))
        console.print(table)
    _heading(console, "Rows")
    _counted(console, "", difference.counts)
    if difference.reasons:
        _heading(console, "Rejected, by reason")
        _counted(console, "reason", difference.reasons)
    _heading(console, "Kept, by source")
    _counted(console, "source", difference.sources)
    if difference.scores:
        _heading(console, "Scores of kept pairs: mean ± standard deviation")
        table = _table("", "A", "B", "B - A", right=(1, 2, 3))
        for name, moments in difference.scores.items():
            means, deviations = moments["mean"], moments["deviation"]
            change = (
                f"{round(means[1] - means[0], 4) + 0.0:+.4f}"
                if means[0] is not None and means[1] is not None
                else "-"
            )
            sides = (
                "-" if mean is None else f"{mean:.4f} ± {deviation or 0.0:.4f}"
                for mean, deviation in zip(means, deviations, strict=True)
            )
            table.add_row(name, *sides, change)
        console.print(table)
    _distribution(console, difference)
    _pairs(console, difference)


def _pairs(console: Console, difference: Difference) -> None:
    _heading(console, "Pairs")
    changed, entered, left = difference.changed, difference.entered, difference.left
    console.print(
        f"{difference.same:,} the same, {changed.pairs:,} with another text, "
        f"[green]{entered.pairs:,} entered[/] (in B only), [red]{left.pairs:,} left[/] (in A only)\n"
    )
    _moved(console, entered, "green", "Entered", "in A they were")
    _moved(console, left, "red", "Left", "in B they are")
    if changed.examples:
        _heading(console, "Examples with another text")
        table = _table("score", "A", "B", "from")
        for pair in changed.examples:
            scores = [pair.get(f"paraphrase_score_{side}") for side in "ab"]
            table.add_row(
                " → ".join("-" if score is None else f"{score:.2f}" for score in scores),
                *(
                    _text(f"{pair.get(f'reference_{side}', '')}\n{pair.get(f'translation_{side}', '')}")
                    for side in "ab"
                ),
                _text(f"{pair['source']}:{pair['line']}"),
            )
        console.print(table)


def _moved(console: Console, moved: Moved, colour: str, title: str, where: str) -> None:
    if not moved.pairs:
        return
    _heading(console, f"{title}: {where}")
    for reason, number in moved.reasons.most_common():
        console.print(f"  [{colour}]{number:>12,}[/]  ", _text(reason))
    console.print()
    if not moved.examples:
        return
    table = _table("score", "reference", "translation", "from")
    for pair in moved.examples:
        score = pair.get("paraphrase_score")
        table.add_row(
            "-" if score is None else f"{score:.2f}",
            _text(pair.get("reference")),
            _text(pair.get("translation")),
            _text(f"{pair['source']}:{pair['line']}"),
        )
    console.print(table)


def _distribution(console: Console, difference: Difference) -> None:
    if not difference.distribution:
        return
    _heading(console, "Paraphrase score of kept pairs")
    table = _table("score", "A", "", "B", "", right=(1, 3))
    most = max(max(row["a"], row["b"]) for row in difference.distribution)
    for row in difference.distribution:
        cells = [
            part
            for side, colour in (("a", "red"), ("b", "green"))
            for part in (f"{row[side]:,}", f"[{colour}]{'█' * round(_BAR * row[side] / most)}[/]")
        ]
        table.add_row(f"({row['above']:.1f}, {row['above'] + 0.1:.1f}]", *cells)
    console.print(table)


def _counted(console: Console, name: str, counts: Mapping[str, tuple[int, int]]) -> None:
    table = _table(name, "A", "B", "B - A", right=(1, 2, 3))
    for key, (a, b) in counts.items():
        table.add_row(_text(key), f"{a:,}", f"{b:,}", f"{b - a:+,}" if a != b else "")
    console.print(table)


def _heading(console: Console, title: str) -> None:
    console.print(f"[bold cyan]{title}[/]")


def _table(*columns: str, right: tuple[int, ...] = ()) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="dim")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place in right else "left", overflow="fold")
    return table


def _text(value: Any) -> Any:
    from rich.text import Text

    from paraforge.interface.query.output import one_line

    return Text("\n".join(map(one_line, str(value or "").split("\n"))))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # The first digits distinguish fingerprints.
    return text[:12] if len(text) == 64 and all(digit in "0123456789abcdef" for digit in text) else text
