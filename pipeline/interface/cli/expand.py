"""``paraforge expand``: give trained decoders the words of a file of vectors."""

from __future__ import annotations

from pathlib import Path

import typer


def expand(
    model: Path = typer.Argument(help="directory of trained decoders"),
    vectors: Path = typer.Argument(
        help="word vectors: a file (word2vec, GloVe, paragram), a table's directory, a trained Word model"
    ),
    output: Path = typer.Argument(metavar="OUTPUT", help="directory to write"),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Give trained decoders vectors of words that they were not trained on (vocabulary expansion).

    A linear map is fitted from VECTORS to the model's own word vectors, over the words that both have
    (Kiros et al. 2015), and applied to the others.

    \b
    Examples:
      paraforge expand decoders/small glove.840B.300d.txt decoders/large
      paraforge evaluate decoders/large@context --sts sts --baseline decoders/small@context
    """
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.embeddings.unrolling.model import DecoderModel
    from paraforge.embeddings.unrolling.model import expand as expanded
    from paraforge.interface.cli.outputs import DECODERS, check_output_directory
    from paraforge.products.loading import open_word_vectors

    check_output_directory(output, force, DECODERS)
    with graceful_interrupts():
        larger = expanded(DecoderModel.open(model), open_word_vectors(vectors))
        larger.save(output)
    counts = larger.about["expanded"]
    typer.echo(f"{output}: {counts['words']:,} words more, by a map fitted on {counts['shared']:,}")
