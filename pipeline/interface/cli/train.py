"""``train``: train sentence embeddings on pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.logs import configure_logging, counted
from paraforge.base.shards.resources import Resources
from paraforge.interface.cli.settings import (
    DEVELOPMENT,
    DEVICE,
    FORCE,
    SETTINGS,
    TEST_SETS,
    THREADS,
    WORK,
    check_output,
    checked,
    with_settings,
)

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
        lines.append(f"{report.passed_over:,} times a pair was skipped because no text could be its negative")
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
    wanted = [one.strip() for one in columns.split(",")] if columns else None
    files = [
        checked(PairFileParameters, {"path": str(path), "columns": wanted})
        for path in pairs
        if not path.is_dir()
    ]
    return files, [path for path in pairs if path.is_dir()]
