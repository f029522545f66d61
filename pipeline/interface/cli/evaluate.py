"""``paraforge evaluate``: sentence and word similarity and transfer tasks of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.errors import ConfigurationError
from paraforge.base.files import write_json
from paraforge.base.interrupts import graceful_interrupts
from paraforge.interface.cli.outputs import check_output_file, json_object
from paraforge.interface.cli.settings import DEVICE_HELP

if TYPE_CHECKING:
    from paraforge.embeddings.fine_tuning.transfer import Variant


def evaluate(
    model: str = typer.Argument(
        help="a trained model, SIF or sentence-transformers directory, a file or directory of word vectors "
        "(which are averaged), or a baseline: tfidf, tfidf-trigrams, jaccard, chrf; of trained decoders also "
        "with @context, @unrolled:3 or @mean:3 behind it, and :cosine behind that"
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
    task: list[str] = typer.Option(
        [], "--task", help="only this transfer task, e.g. SICK-R, 'SST binary'; may be given several times"
    ),
    folds: int = typer.Option(10, min=2, help="of transfer tasks without a split: MR, CR, SUBJ, MPQA"),
    fine_tune: bool = typer.Option(
        False, "--fine-tune", help="train a copy of the model end to end for each transfer task, too"
    ),
    fine_tune_from: list[str] = typer.Option(
        ["trained"],
        "--fine-tune-from",
        help="trained: from the model's parameters; random: from scratch, to compare; may be given twice",
    ),
    fine_tune_penalty: list[float] = typer.Option(
        [],
        "--fine-tune-penalty",
        min=0,
        help="train with an L2 penalty for leaving the model's parameters, too, e.g. 0.001; of several "
        "the one that does best on the development examples is taken",
    ),
    fine_tune_set: list[str] = typer.Option(
        [],
        "--set",
        metavar="KEY=VALUE,...",
        help="a setting of --fine-tune; of several values the development examples choose, e.g. "
        "learning_rate=0.001,0.0003; docs/evaluation.md has all",
    ),
    fine_tune_work: Path | None = typer.Option(
        None,
        "--fine-tune-work",
        metavar="DIR",
        help="keep the result of every fit here: after a kill, the same command continues",
    ),
    by_length: bool = typer.Option(
        False, "--by-length", help="STS by the length of the longer sentence too (Wieting 2016, Table 7)"
    ),
    baseline: list[str] = typer.Option([], "--baseline", help="baseline or model to compare MODEL with"),
    against: list[str] = typer.Option(
        [], "--against", help="the same, and the mean absolute difference to it (ParaNMT, Table 10)"
    ),
    output: Path | None = typer.Option(None, "--output", "-o", help="write all figures to this file as JSON"),
    as_json: bool = typer.Option(False, "--json", help="print JSON"),
    seed: int = typer.Option(1, min=0, help="of the transfer tasks: folds, development examples"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    force: bool = typer.Option(False, "--force", help="replace the file of --output"),
) -> None:
    """Evaluate a model of sentence embeddings; every figure is x 100.

    STS: Pearson and Spearman between the cosine (of trained decoders the dot product) and the judgements for
    each set; a year's figure is the
    unweighted mean over its sets. Formats: 'gold TAB sentence TAB sentence', STS.input.X.txt with
    STS.gs.X.txt, STS Benchmark, SICK, 'phrase ||| phrase ||| score'. A row without a score is passed over, a
    malformed one ends the command with its file and line.

    Words: Spearman, a pair with a word that has no vector counting as 0. Transfer (MR, CR, SUBJ, MPQA, SST,
    TREC, MRPC, SICK-E, SICK-R): logistic regression and the KL objective on fixed embeddings; tasks whose
    files are not there are listed. See docs/evaluation.md.

    With --fine-tune a copy of the encoder and the layers above it are trained together for each task
    (Wieting 2016, 4.4), and the scores are next to those of fixed embeddings: from the model's
    parameters, with a penalty for leaving them, from a random start. The model itself stays as it is.
    Tasks without a split are trained once a fold, minutes a task; --folds 3 or --task make it short.

    \b
    Examples:
      paraforge evaluate models/embeddings/word --sts sts
      paraforge evaluate models/embeddings/word --sts sts --baseline tfidf-trigrams -o scores.json
      paraforge evaluate models/embeddings/word --sts sts --by-length --against models/embeddings/trigram
      paraforge evaluate glove.840B.300d.txt --sts sts --similarity SimLex-999.txt
      paraforge evaluate models/sif --sts sts/stsb-dev.tsv --transfer transfer
      paraforge evaluate models/embeddings/word --transfer transfer --task "SST binary" --fine-tune
      paraforge evaluate models/embeddings/word --transfer transfer --sts sts --fine-tune \\
          --fine-tune-from trained --fine-tune-from random \\
          --fine-tune-penalty 0.0001 --fine-tune-penalty 0.001
      paraforge evaluate models/sif --transfer transfer --fine-tune --set encoder=fixed,trained \\
          --set projection=2400
      paraforge evaluate jaccard --sts sts
      paraforge evaluate decoders/small@unrolled:2 --sts sts --baseline decoders/small@context
    """
    from functools import partial

    from paraforge.embeddings.evaluation.evaluate import evaluate as run
    from paraforge.products.loading import open_model

    check_output_file(output, force, json_object("an evaluation", "paraforge", "tokenizer", "model", "kind"))
    fine_tuner = None
    if variants := _variants(fine_tune, fine_tune_from, fine_tune_penalty, fine_tune_set):
        from paraforge.embeddings.fine_tuning import transfer as fine_tuning

        fine_tuner = fine_tuning.fine_tuner(variants, seed, folds, fine_tune_work)
    with graceful_interrupts():
        result = run(
            model,
            partial(open_model, device=device),
            sts=sts,
            word_lists=similarity,
            transfer=transfer,
            task_names=task,
            fine_tuner=fine_tuner,
            folds=folds,
            lengths=by_length,
            beside=baseline,
            against=against,
            seed=seed,
        )
    if output is not None:
        write_json(output, result.as_json())
    typer.echo(json.dumps(result.as_json(), indent=2) if as_json else "\n".join(result.lines()))


def _variants(wanted: bool, starts: list[str], penalties: list[float], settings: list[str]) -> list[Variant]:
    if not wanted:
        if starts != ["trained"] or penalties or settings:
            raise ConfigurationError(["--fine-tune-from, --fine-tune-penalty and --set need --fine-tune"])
        return []
    from paraforge.embeddings.fine_tuning.transfer import make_variants

    grid = {}
    for setting in settings:
        key, equals, values = setting.partition("=")
        if not equals or not key or not values:
            raise ConfigurationError([f"--set {setting}: KEY=VALUE,... is expected, e.g. epochs=20"])
        grid[key] = values.split(",")
    return make_variants(starts, penalties, grid)
