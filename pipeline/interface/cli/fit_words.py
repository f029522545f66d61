"""``paraforge fit-words``: move word vectors by synonyms and antonyms."""

from __future__ import annotations

from pathlib import Path

import typer


def fit_words(
    vectors: Path = typer.Argument(
        help="word vectors: a file (word2vec, GloVe, paragram), a table's directory, a trained Word model"
    ),
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
    from paraforge.base.errors import ConfigurationError
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.embeddings.evaluation.similarity.word_lists import read_similarity_lists
    from paraforge.embeddings.learning.counter_fitting import counter_fit, read_word_pairs
    from paraforge.interface.cli.outputs import check_output_file, text_lines
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
        f"{output}: {used['synonyms']:,} pairs of synonyms, {used['antonyms']:,} of antonyms", err=True
    )
