"""``paraforge negatives``: the negatives that mega-batch training would pick for a model's pairs."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from paraforge.interface.cli.spelling import DEVICE_HELP


def negatives(
    model: Path = typer.Argument(help="directory of a trained model, e.g. models/embeddings/word"),
    pairs: list[Path] = typer.Argument(metavar="PAIRS...", help="TSV or PPDB files, published corpora"),
    mega_batch: str = typer.Option("1,20,40", help="mini-batches of a mega-batch (M), separated by commas"),
    batch_size: int = typer.Option(100, min=2, help="pairs of a mini-batch"),
    count: int = typer.Option(3, "--count", "-n", min=1, help="pairs to show, at most a mini-batch"),
    columns: str = typer.Option("", help="the two columns of the files, e.g. 2,3; counted from 0"),
    seed: int = typer.Option(1, min=0, help="of the pairs that are drawn"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
) -> None:
    """Show the negatives that training would choose for pairs drawn at random (ParaNMT-50M, Table 7).

    The larger the mega-batch, the more similar the negative. One that is a paraphrase itself shows that M is
    too large for these pairs.

    \b
    Examples:
      paraforge negatives models/embeddings/word data/corpus
      paraforge negatives models/embeddings/word pairs.tsv.gz --mega-batch 1,5,20 -n 10
    """
    from dataclasses import asdict

    from paraforge.base.errors import ConfigurationError
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.embeddings.inference.negatives import chosen_negatives
    from paraforge.embeddings.trainer.data import TrainingData
    from paraforge.interface.cli.train import files_and_corpora
    from paraforge.products.loading import load_fixed

    if not all(part.isdecimal() and int(part) for part in mega_batch.split(",")):
        raise ConfigurationError([f"--mega-batch {mega_batch}: whole numbers from 1, e.g. 1,20,40"])
    sizes = sorted({int(part) for part in mega_batch.split(",")})
    data = TrainingData(*files_and_corpora(pairs, columns))
    with graceful_interrupts():
        opened = load_fixed(model, device)
        found = chosen_negatives(opened, data.blocks(), sizes, batch_size=batch_size, count=count, seed=seed)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
        return
    for one in found:
        typer.echo(f"{one.left}\n  {one.cosine:.4f}  its other side  {one.right}")
        for size, (text, cosine) in one.negatives.items():
            typer.echo(f"  {cosine:.4f}  M = {size:<10}  {text}")
