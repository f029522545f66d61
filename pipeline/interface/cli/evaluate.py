"""``paraforge evaluate``: sentence and word similarity of a model."""

from __future__ import annotations

from pathlib import Path

import typer

from paraforge.base.files import write_json
from paraforge.interface.cli.settings import DEVICE, FORCE, OUTPUT, check_output


def evaluate(
    model: str = typer.Argument(
        help="directory of a trained model, SIF or sentence-transformers model, or word vectors (a file or "
        "directory), which are averaged"
    ),
    sts: list[Path] = typer.Option(
        [], "--sts", help="directory or file of scored sentence pairs; may be repeated"
    ),
    similarity: list[Path] = typer.Option(
        [], "--similarity", help="word pairs with judgments, such as SimLex-999.txt or a CSV"
    ),
    by_length: bool = typer.Option(
        False,
        "--by-length",
        help="also show STS by the length of the longer sentence (Wieting 2016, Table 7)",
    ),
    baseline: list[str] = typer.Option(
        [],
        "--baseline",
        help="model to compare MODEL with, also by the mean absolute difference (ParaNMT, Table 10); may be "
        "repeated",
    ),
    output: Path | None = OUTPUT,
    device: str = DEVICE,
    force: bool = FORCE,
) -> None:
    """Evaluate sentence embeddings. All figures are x 100.

    STS: Pearson and Spearman between cosines and human scores for each set; a year's figure is the unweighted
    mean over its sets. Formats: 'gold TAB sentence TAB sentence', STS.input.X.txt with STS.gs.X.txt, STS
    Benchmark, SICK, 'phrase ||| phrase ||| score'. Rows without a score are skipped; a malformed row is an
    error.

    Words: Spearman; a pair with a word that has no vector counts as 0. See embeddings.md.

    \b
    Examples:
      paraforge evaluate models/embeddings/word --sts sts
      paraforge evaluate models/embeddings/word --sts sts --baseline models/sif -o scores.json
      paraforge evaluate models/embeddings/word --sts sts --by-length --baseline models/embeddings/trigram
      paraforge evaluate glove.840B.300d.txt --sts sts --similarity SimLex-999.txt
    """
    from functools import partial

    from paraforge.embeddings.evaluation.evaluate import evaluate as run
    from paraforge.products.loading import open_model

    check_output(output, force)
    result = run(
        model,
        partial(open_model, device=device),
        sts=sts,
        word_lists=similarity,
        lengths=by_length,
        beside=baseline,
    )
    if output is not None:
        write_json(output, result.as_json())
    typer.echo("\n".join(result.lines()))
