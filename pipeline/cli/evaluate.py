"""``paraforge evaluate``: sentence and word similarity and transfer tasks of a model."""

from __future__ import annotations

from pathlib import Path

import typer

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def evaluate(
    model: str = typer.Argument(
        help="a trained model, SIF or sentence-transformers directory, a file or directory of word vectors "
        "(which are averaged), or a baseline: tfidf, tfidf-trigrams, jaccard"
    ),
    sts: list[Path] = typer.Option(
        [], "--sts", help="directory or file of scored sentence pairs; may be given several times"
    ),
    similarity: list[Path] = typer.Option(
        [], "--similarity", help="word pairs with judgements, such as SimLex-999.txt or a csv"
    ),
    transfer: list[Path] = typer.Option(
        [], "--transfer", help="directory of transfer tasks, in this project's or SentEval's layout"
    ),
    by_length: bool = typer.Option(
        False, "--by-length", help="STS by the length of the longer sentence too (Wieting 2016, Table 7)"
    ),
    baseline: list[str] = typer.Option([], "--baseline", help="baseline or model to show beside MODEL"),
    against: list[str] = typer.Option(
        [], "--against", help="the same, and the mean absolute difference to it (ParaNMT, Table 10)"
    ),
    output: Path | None = typer.Option(None, "--json", help="write all figures to this file"),
    seed: int = typer.Option(1, min=0, help="of the transfer tasks: folds, development examples"),
    device: str = typer.Option("cpu", help="cpu, cuda, cuda:1, ..."),
    force: bool = typer.Option(False, "--force", help="overwrite the file of --json"),
) -> None:
    """Evaluate a model of sentence embeddings; every figure is x 100.

    STS: Pearson and Spearman between the cosine and the judgements for each set; a year's figure is the
    unweighted mean over its sets. Formats: 'gold TAB sentence TAB sentence', STS.input.X.txt with
    STS.gs.X.txt, STS Benchmark, SICK, 'phrase ||| phrase ||| score'. A row without a score is passed over, a
    malformed one ends the command with its file and line.

    Words: Spearman, a pair with a word that has no vector counting as 0. Transfer (MR, CR, SUBJ, MPQA, SST,
    TREC, MRPC, SICK-E, SICK-R): logistic regression and the KL objective on fixed embeddings; tasks whose
    files are not there are listed. See docs/evaluation.md.

    \b
    Examples:
      paraforge evaluate models/embeddings/word --sts sts
      paraforge evaluate models/embeddings/word --sts sts --baseline tfidf-trigrams --json scores.json
      paraforge evaluate models/embeddings/word --sts sts --by-length --against models/embeddings/trigram
      paraforge evaluate glove.840B.300d.txt --sts sts --similarity SimLex-999.txt
      paraforge evaluate models/sif --sts sts/stsb-dev.tsv --transfer transfer
      paraforge evaluate jaccard --sts sts
    """
    from pipeline.errors import InputError
    from pipeline.evaluation.evaluate import evaluate as run
    from pipeline.files import write_json
    from pipeline.interrupts import graceful_interrupts

    if output is not None and output.exists() and not force:
        raise InputError("already there", output, remedy="Give --force to overwrite it.")
    with graceful_interrupts():
        result = run(
            model,
            sts=sts,
            word_lists=similarity,
            transfer=transfer,
            lengths=by_length,
            beside=baseline,
            against=against,
            seed=seed,
            device=device,
        )
    if output is not None:
        write_json(output, result.as_json())
    typer.echo("\n".join(result.lines()))
