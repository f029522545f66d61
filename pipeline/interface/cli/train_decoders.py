"""``paraforge train-decoders``: train a network that predicts the sentences before and behind another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.logs import counted
from paraforge.embeddings.unrolling.parameters import DecodersParameters, parse_representation
from paraforge.interface.cli.settings import checked, options_of, put_setting, score_lines
from paraforge.interface.cli.spelling import DEVELOPMENT, DEVICE_HELP, TEST_SETS

if TYPE_CHECKING:
    from paraforge.embeddings.unrolling.sentences import SentenceFile
    from paraforge.embeddings.unrolling.train_decoders import DecodersReport


@options_of(
    DecodersParameters,
    *("network.encoder", "network.decoder", "network.word_dimension", "network.state_dimension"),
    *("training.epochs", "training.updates", "training.batch_size", "training.learning_rate"),
    *("training.precision", "training.evaluate_every", "training.patience", "training.seed"),
    vocabulary="vocabulary.maximum_size",
)
def train_decoders(
    values: dict[str, Any],
    inputs: list[Path] = typer.Argument(
        metavar="SENTENCES... OUTPUT",
        help="files of running text, plain, gz, bz2, xz or zst; last the model's directory",
    ),
    representation: str = typer.Option(
        "", help="what development sets judge and the model gives: context, unrolled:3, mean:3, ...:cosine"
    ),
    settings: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="one other parameter, e.g. training.clip=1, maximum_length=40"
    ),
    format: str = typer.Option("auto", help="tsv, text, or auto: TSV where the first line has a tab"),
    sentence_column: int | None = typer.Option(
        None, min=0, help="of a TSV, counted from 0; the last one if not given"
    ),
    document_columns: str = typer.Option(
        "", help="of a TSV, e.g. 0,1: a document ends where one changes; column 0 if not given"
    ),
    development: list[Path] = DEVELOPMENT,
    test_sets: list[Path] = TEST_SETS,
    device: str = typer.Option("auto", help=DEVICE_HELP),
    threads: int = typer.Option(0, min=0, help="CPU threads; 0 is one per core"),
    checkpoint_seconds: float = typer.Option(300.0, min=0, help="between two checkpoints"),
    work: Path = typer.Option(Path("work"), help="where triples and checkpoints are kept until the end"),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Train sentence embeddings on running text (Zhelezniak et al. 2018): an encoder reads a sentence, two
    decoders predict the one before and the one behind it.

    A TSV has a sentence a row, its documents' names in other columns; neighbours are of one document. In
    plain text, a sentence a line, a blank line ends a document. Sentences are cut into the project's tokens,
    lower-cased, and to 30 words.

    A GRU decoder is read by unrolling: its first N states are the sentence's vector. Which N is chosen when
    the model is used: MODEL@unrolled:N; see docs/unrolling.md. Vectors are compared by their dot product.

    Killed at any time, the same command resumes from its last checkpoint. OUTPUT appears when the model is
    finished. The defaults are the paper's sizes, for a GPU; the second example is for a laptop.

    \b
    Examples:
      paraforge train-decoders books.tsv.gz decoders/bow-gru --device cuda --precision bfloat16
      paraforge train-decoders books.tsv.gz decoders/small --word-dimension 300 --vocabulary 10000 \\
          --batch-size 64 --learning-rate 0.001 --updates 2000 --precision bfloat16
      paraforge train-decoders book1.txt book2.txt decoders/gru-gru --encoder gru \\
          --development sts/2017.track5.en-en.tsv --evaluate-every 500 --patience 5
      paraforge evaluate decoders/small@unrolled:2 --sts sts --baseline decoders/small@context
    """
    from paraforge.base.devices import chosen_device
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.base.logs import configure_logging
    from paraforge.base.shards.resources import Resources
    from paraforge.embeddings.trainer.data import TrainingData
    from paraforge.embeddings.unrolling.train_decoders import train_decoders as train
    from paraforge.interface.cli.outputs import DECODERS, check_output_directory

    if len(inputs) < 2:
        raise ConfigurationError(["SENTENCES... OUTPUT: give at least one file, and the directory"])
    *paths, output = inputs
    check_output_directory(output, force, DECODERS)
    parameters = _parameters(values, representation, settings)
    files = [_file(path, format, sentence_column, document_columns) for path in paths]
    judges = TrainingData(
        development=[str(path) for path in development], test_sets=[str(path) for path in test_sets]
    )
    configure_logging("train-decoders")
    with graceful_interrupts():
        report = train(
            parameters,
            files,
            output,
            Resources(threads=threads, work=work),
            judges=judges,
            device=chosen_device(device),
            checkpoint_seconds=checkpoint_seconds,
        )
    typer.echo("\n".join(_lines(report)))


def _parameters(content: dict[str, Any], representation: str, settings: list[str]) -> DecodersParameters:
    if representation:
        try:
            content["representation"] = parse_representation(representation).model_dump()
        except InputError as error:
            raise ConfigurationError([f"--representation: {error}"]) from error
    for setting in settings:
        put_setting(content, setting)
    return checked(DecodersParameters, content)


def _file(path: Path, format: str, sentence_column: int | None, document_columns: str) -> SentenceFile:
    from paraforge.embeddings.unrolling.sentences import FORMATS, SentenceFile

    known = next((known for known in FORMATS if known == format), None)
    if known is None:
        raise ConfigurationError([f"--format {format}: there are {', '.join(FORMATS)}"])
    try:
        columns = tuple(int(number) for number in document_columns.split(",")) if document_columns else None
    except ValueError:
        raise ConfigurationError([f"--document-columns {document_columns}: numbers, such as 0,1"]) from None
    if columns is not None and min(columns) < 0:
        raise ConfigurationError([f"--document-columns {document_columns}: columns are counted from 0"])
    return SentenceFile(path, known, sentence_column, columns)


def _lines(report: DecodersReport) -> list[str]:
    lines = [
        report.signature,
        f"{counted(report.seen, 'sentence')} seen, {counted(report.updates, 'update')}, "
        f"loss {report.history[-1]['loss']:.4f} nats a word, {report.sentences_per_second:,.0f} sentences/s",
    ]
    if report.skipped:
        lines.append(f"{counted(report.skipped, 'sentence')} left out: without a word")
    return [*lines, *score_lines(report.best_score, report.years)]
