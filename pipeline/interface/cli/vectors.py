"""``embed`` and ``export``: use a trained model."""

from enum import StrEnum
from pathlib import Path

import typer

from paraforge.base.devices import chosen_device
from paraforge.base.logs import counted
from paraforge.interface.cli.settings import DEVICE, FORCE, SENTENCES, WORKERS, check_output

_MODEL = typer.Argument(help="directory of a trained model, e.g. models/embeddings/word")


def embed(
    model: Path = _MODEL,
    input_path: Path = SENTENCES,
    output: Path = typer.Argument(metavar="OUTPUT", help="file to write: .npy or .parquet"),
    workers: int = WORKERS,
    device: str = DEVICE,
    force: bool = FORCE,
) -> None:
    """Embed a file of sentences. Memory does not grow with the file.

    Row k is line k + 1. A line without a token, such as an empty line, has the zero vector.

    \b
    Examples:
      paraforge embed models/embeddings/word sentences.txt.gz vectors.npy
      cut -f2 pairs.tsv | paraforge embed models/embeddings/word - vectors.parquet
    """
    from paraforge.base.shards.resources import available_cores
    from paraforge.embeddings.inference.embed import embed_file
    from paraforge.products.loading import load_fixed

    check_output(output, force)
    cores = workers or available_cores()
    rows = embed_file(model, input_path, output, load_fixed, cores, chosen_device(device))
    typer.echo(f"{output}: {counted(rows, 'sentence')}", err=True)


class _Format(StrEnum):
    sentence_transformers = "sentence-transformers"
    word2vec = "word2vec"


def export(
    model: Path = typer.Argument(help="directory of a trained model, e.g. models/embeddings/word"),
    output: Path = typer.Argument(metavar="OUTPUT", help="directory to write, or for word2vec a text file"),
    format: _Format = typer.Option(..., help="format to write"),
    force: bool = FORCE,
) -> None:
    """Export a trained model.

    sentence-transformers: a directory for SentenceTransformer(OUTPUT), with the same vectors. Word models,
    also several side by side or added, load without Paraforge; other models need it, and
    trust_remote_code=True.
    word2vec: the word vectors as text.

    \b
    Examples:
      paraforge export models/embeddings/word exported --format sentence-transformers
      paraforge export models/embeddings/word vectors.txt --format word2vec
    """
    from paraforge.embeddings.inference.export import export_model

    check_output(output, force, directory=format is not _Format.word2vec)
    export_model(model, output, format.value)
    typer.echo(f"{output}: {format.value}", err=True)
