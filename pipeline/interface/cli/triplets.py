"""``paraforge triplets``: mine anchors, positives and hard negatives for other trainers."""

from pathlib import Path

import typer

from paraforge.base.devices import check_device
from paraforge.base.errors import InputError
from paraforge.base.logs import counted
from paraforge.base.shards.resources import Resources
from paraforge.interface.cli.settings import (
    DEVICE,
    FORCE,
    SETTINGS,
    WORK,
    WORKERS,
    check_output,
    with_settings,
)
from paraforge.products.triplets.parameters import NO_ENCODER, TripletsParameters


def triplets(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    output: Path = typer.Argument(metavar="OUTPUT", help="directory to write"),
    encoder: str = typer.Option(
        "general",
        metavar="MODEL",
        help="general (word vectors of the built-in scorer), a trained model, SIF, a vector file, or a "
        "sentence-transformers directory",
    ),
    settings: list[str] = SETTINGS,
    workers: int = WORKERS,
    device: str = DEVICE,
    work: Path = WORK,
    force: bool = FORCE,
) -> None:
    """Mine triplets in a corpus: a reference, its translation, and a similar translation from another pair.

    Negatives never come from the anchor's cluster, which contains all pairs connected to it by a shared text
    (ignoring case and punctuation), foreign side or image. OUTPUT contains triplets-*.parquet with the
    columns anchor, positive and negative (or negative_1 to negative_N), _lineage-*.parquet with the row of
    each text in the corpus, and _clusters-*.parquet with the cluster of every row. --set takes the keys of
    section triplets: negatives, margin, same_lines.

    \b
    Examples:
      paraforge triplets data/corpus triplets
      paraforge triplets data/corpus triplets --encoder models/embeddings/word --set negatives=5
      paraforge triplets data/corpus triplets --encoder all-MiniLM-L6-v2 --set margin=0.1 --force
    """
    from paraforge.products.triplets.mining import mine_triplets

    check_output(output, force, directory=True)
    if encoder == NO_ENCODER:
        raise InputError("--encoder none finds no triplets", remedy="Use 'general' or a model.")
    if device != "auto":
        check_device(device)
    parameters = with_settings(TripletsParameters, settings, {"encoder": encoder})
    resources = Resources(workers=workers, devices=[device], work=work)
    report = mine_triplets(parameters, corpus, output, resources)
    left_out = ", ".join(f"{reason} {number:,}" for reason, number in report.left_out.items() if number)
    typer.echo(
        f"{output}: {counted(report.triplets, 'triplet')} from {counted(report.rows, 'pair')}"
        + (f" (left out: {left_out})" if left_out else "")
        + f", {counted(report.clusters, 'cluster')}; mean cosine {report.positive_cosine:.3f} of positives, "
        f"{report.negative_cosine:.3f} of negatives"
    )
