"""``sif``, ``fit-words`` and ``expand``: what is made of word vectors."""

from pathlib import Path

import typer

from paraforge.base.errors import ConfigurationError
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.logs import counted
from paraforge.interface.cli.outputs import (
    DECODERS,
    SIF,
    check_output_directory,
    check_output_file,
    text_lines,
)

_VECTORS = typer.Argument(
    help="word vectors: a file (word2vec, GloVe, paragram), a table's directory, a trained Word model"
)


def sif(
    vectors: Path = _VECTORS,
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
    from paraforge.embeddings.evaluation.baselines.sif import describe_average, fit_sif, save_sif
    from paraforge.products.loading import open_word_vectors

    check_output_directory(output, force, SIF)
    with graceful_interrupts():
        model, about = fit_sif(vectors, counts, fit, weights, a, components, open_word_vectors)
        save_sif(model, output, about)
    typer.echo(f"{output}: {describe_average(model)}")


def fit_words(
    vectors: Path = _VECTORS,
    output: Path = typer.Argument(metavar="OUTPUT", help="word2vec text file to write"),
    synonyms: list[Path] = typer.Option([], help="file of words that are alike, two on a line"),
    antonyms: list[Path] = typer.Option([], help="file of words that are opposites, two on a line"),
    without: list[Path] = typer.Option(
        [], help="word similarity list (as for evaluate --similarity) whose pairs are not used"
    ),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Move word vectors so that synonyms are near and antonyms are not (counter-fitting, Mrksic et al. 2016).

    Lengths stay as they are, and so do words of no pair. OUTPUT is a vector file for every command, also for
    'paraforge train --vectors'.

    \b
    Examples:
      paraforge fit-words models/embeddings/word fitted.txt --synonyms ppdb.txt --antonyms antonyms.txt \\
          --without SimLex-999.txt
    """
    from paraforge.embeddings.evaluation.similarity.word_lists import read_similarity_lists
    from paraforge.embeddings.learning.counter_fitting import counter_fit, read_word_pairs
    from paraforge.products.loading import open_word_vectors

    if not synonyms and not antonyms:
        raise ConfigurationError(["give --synonyms, --antonyms or both"])
    check_output_file(output, force, text_lines("a word2vec text file", r"\d+ \d+"))
    left_out = {(min(pair), max(pair)) for judged in read_similarity_lists(without) for pair in judged.pairs}
    near, apart = read_word_pairs(synonyms) - left_out, read_word_pairs(antonyms) - left_out
    with graceful_interrupts():
        fitted, used = counter_fit(open_word_vectors(vectors), near - apart, apart)
        fitted.write_text(output, header=True)
    typer.echo(
        f"{output}: {counted(used['synonyms'], 'pair')} of synonyms, {used['antonyms']:,} of antonyms",
        err=True,
    )


def expand(
    model: Path = typer.Argument(help="directory of trained decoders"),
    vectors: Path = _VECTORS,
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
    from paraforge.embeddings.unrolling.model import DecoderModel
    from paraforge.embeddings.unrolling.model import expand as expanded
    from paraforge.products.loading import open_word_vectors

    check_output_directory(output, force, DECODERS)
    with graceful_interrupts():
        larger = expanded(DecoderModel.open(model), open_word_vectors(vectors))
        larger.save(output)
    counts = larger.about["expanded"]
    typer.echo(f"{output}: {counted(counts['words'], 'word')} more, by a map fitted on {counts['shared']:,}")
