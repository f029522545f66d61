"""``paraforge sif``: fit SIF sentence embeddings over word vectors."""

from __future__ import annotations

from pathlib import Path

import typer


def sif(
    vectors: Path = typer.Argument(
        help="word vectors: a file (word2vec, GloVe, paragram), a table's directory, a trained Word model"
    ),
    output: Path = typer.Argument(metavar="OUTPUT", help="directory to write"),
    counts: Path | None = typer.Option(
        None,
        "--counts",
        "-c",
        help="'word count' lines, plain or compressed, or a corpus such as data/corpus",
    ),
    fit: list[Path] = typer.Option(
        [],
        "--fit",
        help="sentences whose common component is removed: STS sets (as for evaluate --sts) or a file of "
        "sentences, one per line; without it, the component of each evaluated set is removed",
    ),
    a: float = typer.Option(1e-3, help="of the weights a / (a + p(word))"),
    components: int = typer.Option(1, min=0, help="components to remove; 0 leaves the weights alone (W)"),
    weights: str = typer.Option("sif", help="sif; idf, over the sentences of --fit; none (R)"),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Fit SIF (Arora 2017): averages weighted by smooth inverse frequency, without their common component.

    OUTPUT is a model for every command: it holds the vectors, the counts and the component.

    \b
    Examples:
      paraforge sif glove.840B.300d.txt models/sif -c enwiki_vocab_min200.txt.gz
      paraforge sif models/embeddings/word models/sif -c data/corpus --fit sts
      paraforge sif models/embeddings/word models/sif-w -c counts.txt --components 0
      paraforge sif models/embeddings/word models/sif-r --weights none
      paraforge evaluate models/sif --sts sts
    """
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.embeddings.evaluation.baselines.fitting import fit_sif
    from paraforge.embeddings.evaluation.baselines.sif import describe_average, save_sif
    from paraforge.interface.cli.outputs import SIF, check_output_directory
    from paraforge.products.loading import open_word_vectors

    check_output_directory(output, force, SIF)
    with graceful_interrupts():
        model, about = fit_sif(vectors, counts, fit, weights, a, components, open_word_vectors)
        save_sif(model, output, about)
    typer.echo(f"{output}: {describe_average(model)}")
