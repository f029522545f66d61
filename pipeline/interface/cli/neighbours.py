"""``paraforge neighbours``: the words or sentences that a model finds most similar."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from paraforge.interface.cli.spelling import DEVICE_HELP


def neighbours(
    model: str = typer.Argument(help="a trained model, word vectors, SIF, ..., as of 'paraforge embed'"),
    queries: list[str] = typer.Argument(metavar="WORD|SENTENCE", help="what to find neighbours of"),
    among: Path | None = typer.Option(
        None, metavar="FILE", help="candidates, one per line; by default the model's words"
    ),
    count: int = typer.Option(10, "--count", "-n", min=1, help="neighbours of each"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
) -> None:
    """Nearest neighbours by cosine.

    \b
    Examples:
      paraforge neighbours models/embeddings/word laughed respectful
      paraforge neighbours models/embeddings/word "A man is playing a guitar." --among captions.txt.gz
    """
    from dataclasses import asdict

    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.embeddings.inference.neighbours import neighbours as find
    from paraforge.products.loading import load_fixed

    with graceful_interrupts():
        found = find(load_fixed(model, device), queries, among, count)
    if as_json:
        content = {query: [asdict(one) for one in best] for query, best in zip(queries, found, strict=True)}
        typer.echo(json.dumps(content, ensure_ascii=False, indent=2))
        return
    for query, best in zip(queries, found, strict=True):
        typer.echo(query)
        for one in best:
            typer.echo(f"  {one.cosine:.4f}  {one.text}")
