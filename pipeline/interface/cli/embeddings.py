"""``train``, ``evaluate``, ``embed``, ``export`` and ``triplets``: sentence embeddings."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.devices import check_device, chosen_device
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import write_json
from paraforge.base.logs import configure_logging, counted
from paraforge.base.shards.resources import Resources
from paraforge.interface.cli.settings import (
    DEVELOPMENT,
    DEVICE,
    FORCE,
    OUTPUT,
    SENTENCES,
    SETTINGS,
    TEST_SETS,
    THREADS,
    WORK,
    WORKERS,
    check_output,
    check_parameters,
    with_settings,
)
from paraforge.products.triplets.parameters import NO_ENCODER, TripletsParameters

if TYPE_CHECKING:
    from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters
    from paraforge.embeddings.trainer.train_model import EmbeddingsReport


def train(
    inputs: list[Path] = typer.Argument(
        metavar="PAIRS... OUTPUT",
        help="TSV or PPDB files, or published corpora; then the directory for the model",
    ),
    encoder: str = typer.Option(
        "", help="word (default), trigram, lstm, blstm, dan, ..., or several side by side: word+trigram"
    ),
    config: Path | None = typer.Option(
        None, help="YAML file with a model's parameters, as in embeddings.models"
    ),
    settings: list[str] = SETTINGS,
    start: Path | None = typer.Option(None, metavar="MODEL", help="trained model to continue from"),
    vectors: Path | None = typer.Option(None, help="initial word vectors"),
    columns: str = typer.Option(
        "", help="the two columns in the files, counted from 0, e.g. 2,3; by default 0,1"
    ),
    development: list[Path] = DEVELOPMENT,
    test_sets: list[Path] = TEST_SETS,
    drop_leaked: Path | None = typer.Option(
        None, metavar="DIR", help="also drop pairs with a sentence from these STS sets"
    ),
    keep_leaked: bool = typer.Option(
        False,
        "--keep-leaked",
        help="keep pairs with a sentence from a development or test set, and only report them",
    ),
    device: str = DEVICE,
    threads: int = THREADS,
    checkpoint_seconds: float = typer.Option(300.0, min=0, help="seconds between two checkpoints"),
    work: Path = WORK,
    force: bool = FORCE,
) -> None:
    """Train sentence embeddings on paraphrase pairs.

    If the command is killed, run it again; it resumes from its last checkpoint. OUTPUT appears when the model
    is finished.

    \b
    Examples:
      paraforge train data/corpus models/mine
      paraforge train pairs.tsv.gz ppdb-xl.gz models/mixed --encoder word+trigram
      paraforge train my-pairs.tsv models/continued --start models/embeddings/word
      paraforge train data/corpus models/best --encoder blstm --set encoder.output_dimension=900 \\
          --development sts/2017.track5.en-en.tsv --drop-leaked sts
    """
    from paraforge.embeddings.trainer.data import TrainingData
    from paraforge.embeddings.trainer.train_model import train_model

    if len(inputs) < 2:
        raise ConfigurationError(
            ["PAIRS... OUTPUT: pass at least one file or corpus, and the directory for the model"]
        )
    *pairs, output = inputs
    check_output(output, force, directory=True)
    parameters = _parameters(encoder, config, settings, start=start, vectors=vectors)
    if drop_leaked is not None and keep_leaked:
        raise ConfigurationError(["use either --drop-leaked or --keep-leaked"])
    data = TrainingData(
        *files_and_corpora(pairs, columns),
        [str(path) for path in development],
        [str(path) for path in test_sets],
        [] if drop_leaked is None else [str(drop_leaked)],
        not keep_leaked,
    )
    configure_logging("train")
    report = train_model(
        parameters,
        data,
        output,
        Resources(threads=threads, work=work),
        device=chosen_device(device),
        checkpoint_seconds=checkpoint_seconds,
    )
    typer.echo("\n".join(report_lines(report)))


def _parameters(
    encoder: str, config: Path | None, settings: list[str], **paths: Path | None
) -> ModelParameters:
    from paraforge.embeddings.encoders.parameters import named_encoder
    from paraforge.embeddings.trainer.parameters import ModelParameters
    from paraforge.interface.configuration import read_yaml

    content: Any = {}
    if config is not None:
        if not config.is_file():
            raise InputError("no such file", config)
        content = read_yaml(config)[1]
        if not isinstance(content, dict):
            raise InputError("does not contain the parameters of a model", config)
    try:
        if encoder:
            content["encoder"] = named_encoder(encoder)
    except ValueError as error:
        raise ConfigurationError([f"--encoder {encoder}: {error}"]) from error
    content |= {name: str(path) for name, path in paths.items() if path is not None}
    return with_settings(ModelParameters, settings, content)


def report_lines(report: EmbeddingsReport) -> list[str]:
    """Return the result of a training as text."""
    lines = [
        report.signature,
        f"{counted(report.pairs, 'pair')}, {counted(len(report.history), 'evaluation')}, "
        f"{counted(report.updates, 'update')}, "
        f"{report.pairs_per_second:,.0f} pairs/s",
    ]
    if report.skipped:
        lines.append(f"{counted(report.skipped, 'pair')} skipped: a side has no token")
    if report.passed_over:
        lines.append(f"a pair was skipped {report.passed_over:,} times because no text could be its negative")
    if report.best_score is not None:
        lines.append(f"development score {report.best_score:.2f}")
    for name, score in report.years.items():
        line = f"{name:20} Pearson {score['pearson'] or 0:6.2f}  Spearman {score['spearman'] or 0:6.2f}"
        if shared := score.get("development_pairs"):
            line += f"  ({shared} of its {score['pairs']} pairs are also in the development sets)"
        lines.append(line)
    return lines


def files_and_corpora(pairs: list[Path], columns: str) -> tuple[list[PairFileParameters], list[Path]]:
    """Split PAIRS into files of pairs and directories of corpora. Raises InputError if one is missing."""
    from paraforge.embeddings.trainer.parameters import PairFileParameters

    for path in pairs:
        if not path.exists():
            raise InputError("no such file or directory", path)
    names = [column.strip() for column in columns.split(",")] if columns else None
    files = [
        check_parameters(PairFileParameters, {"path": str(path), "columns": names})
        for path in pairs
        if not path.is_dir()
    ]
    return files, [path for path in pairs if path.is_dir()]


def evaluate(
    model: str = typer.Argument(
        metavar="MODEL",
        help="directory of a trained model, SIF or sentence-transformers model, or word vectors (a file or "
        "directory), which are averaged",
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


_MODEL = typer.Argument(metavar="MODEL", help="directory of a trained model, e.g. models/embeddings/word")


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
    model: Path = _MODEL,
    output: Path = typer.Argument(metavar="OUTPUT", help="directory to write, or for word2vec a text file"),
    format: _Format = typer.Option(..., help="format to write"),
    force: bool = FORCE,
) -> None:
    """Export a trained model.

    sentence-transformers: a directory for SentenceTransformer(OUTPUT), with the same vectors. Word models and
    combinations of them load without Paraforge. Other models need Paraforge, and trust_remote_code=True.
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


def triplets(
    corpus: Path = typer.Argument(metavar="CORPUS", help="directory of a published corpus"),
    output: Path = typer.Argument(metavar="OUTPUT", help="directory to write"),
    encoder: str = typer.Option(
        "general",
        metavar="MODEL",
        help="general (word vectors of the built-in scorer), a trained model, SIF, a vector file, or a "
        "sentence-transformers directory",
    ),
    settings: list[str] = SETTINGS,
    workers: int = WORKERS,
    device: str = DEVICE,
    work: Path = WORK,
    force: bool = FORCE,
) -> None:
    """Mine triplets in a corpus: a reference, its translation, and a similar translation from another pair.

    Negatives never come from the anchor's cluster, which contains all pairs connected to it by a shared text
    (ignoring case and punctuation), foreign side or image. OUTPUT contains triplets-*.parquet with the
    columns anchor, positive and negative (or negative_1 to negative_N), _lineage-*.parquet with the row of
    each text in the corpus, and _clusters-*.parquet with the cluster of every row. --set takes the keys of
    the section triplets: negatives, margin, same_lines.

    \b
    Examples:
      paraforge triplets data/corpus triplets
      paraforge triplets data/corpus triplets --encoder models/embeddings/word --set negatives=5
      paraforge triplets data/corpus triplets --encoder all-MiniLM-L6-v2 --set margin=0.1 --force
    """
    from paraforge.products.triplets.mining import mine_triplets

    check_output(output, force, directory=True)
    if encoder == NO_ENCODER:
        raise InputError("--encoder none finds no triplets", remedy="Use 'general' or a model.")
    if device != "auto":
        check_device(device)
    parameters = with_settings(TripletsParameters, settings, {"encoder": encoder})
    resources = Resources(workers=workers, devices=[device], work=work)
    report = mine_triplets(parameters, corpus, output, resources)
    left_out = ", ".join(f"{reason} {number:,}" for reason, number in report.left_out.items() if number)
    typer.echo(
        f"{output}: {counted(report.triplets, 'triplet')} from {counted(report.rows, 'pair')}"
        + (f" (left out: {left_out})" if left_out else "")
        + f", {counted(report.clusters, 'cluster')}; mean cosine {report.positive_cosine:.3f} of positives, "
        f"{report.negative_cosine:.3f} of negatives"
    )
