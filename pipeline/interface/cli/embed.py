"""``paraforge embed``: vectors of a file of sentences."""

from __future__ import annotations

from pathlib import Path

import typer

from paraforge.interface.cli.spelling import DEVICE_HELP


def embed(
    model: Path = typer.Argument(
        help="directory of a trained model, e.g. models/embeddings/word; of trained decoders also with "
        "@context, @unrolled:3 or @mean:3 behind it"
    ),
    input_path: Path = typer.Argument(
        metavar="INPUT", help="sentences, one per line; plain, gz, bz2, xz or zst; - for standard input"
    ),
    output: Path = typer.Argument(metavar="OUTPUT", help=".npy or .parquet"),
    workers: int = typer.Option(0, min=0, help="processes on the CPU; 0 is one per core"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    force: bool = typer.Option(False, "--force", help="overwrite OUTPUT"),
) -> None:
    """Embed sentences, streaming: memory does not grow with the file.

    A line without a token, also an empty one, has the zero vector, so that row k is line k + 1.

    \b
    Examples:
      paraforge embed models/embeddings/word sentences.txt.gz vectors.npy
      cut -f2 pairs.tsv | paraforge embed models/embeddings/word - vectors.parquet
      paraforge embed decoders/bow-gru@unrolled:2 sentences.txt vectors.npy
    """
    from paraforge.base.devices import chosen_device
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.base.shards.resources import available_cores
    from paraforge.embeddings.inference.embed import embed_file
    from paraforge.interface.cli.outputs import check_output_file, numpy_array, table
    from paraforge.products.loading import load_fixed

    kind = numpy_array() if output.suffix == ".npy" else table("a table", "parquet", ["text", "embedding"])
    check_output_file(output, force, kind)
    with graceful_interrupts():
        cores = workers or available_cores()
        rows = embed_file(model, input_path, output, load_fixed, cores, chosen_device(device))
    typer.echo(f"{output}: {rows:,} sentences", err=True)
