"""``paraforge export``: a trained model for other programs."""

from enum import Enum
from pathlib import Path

import typer


class _Format(str, Enum):
    sentence_transformers = "sentence-transformers"
    word2vec = "word2vec"
    safetensors = "safetensors"


class _Precision(str, Enum):
    float32 = "float32"
    int8 = "int8"
    binary = "binary"


def export(
    model: Path = typer.Argument(help="directory of a trained model, e.g. models/embeddings/word"),
    output: Path = typer.Argument(metavar="OUTPUT", help="directory, or the word2vec text file"),
    format: _Format = typer.Option(..., help="what to write"),
    precision: _Precision = typer.Option(
        _Precision.float32, help="of vectors of units, with --format safetensors"
    ),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Export a trained model.

    sentence-transformers: a directory that SentenceTransformer(OUTPUT) loads, with the same vectors. A Word
    model, or several side by side or added (word+word), needs nothing else; other models need Paraforge
    installed and trust_remote_code=True.
    word2vec: the words' vectors as text. safetensors: tensors, vocabularies, architecture and model card;
    with --precision int8 a quarter as large, binary 1/28.

    \b
    Examples:
      paraforge export models/embeddings/word exported --format sentence-transformers
      paraforge export models/embeddings/word vectors.txt --format word2vec
    """
    from paraforge.embeddings.inference.export import export_model
    from paraforge.interface.cli.outputs import (
        SENTENCE_TRANSFORMER,
        TRAINED_MODEL,
        check_output_directory,
        check_output_file,
        text_lines,
    )

    if format is not _Format.word2vec:
        check_output_directory(output, force, TRAINED_MODEL, SENTENCE_TRANSFORMER)
    else:
        check_output_file(output, force, text_lines("a word2vec text file", r"\d+ \d+"))
    export_model(model, output, format.value, precision.value)
    typer.echo(f"{output}: {format.value}", err=True)
