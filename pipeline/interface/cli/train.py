"""``train`` and ``train-decoders``: sentence embeddings from pairs, and from running text, where a network
predicts the sentences before and behind another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.logs import configure_logging, counted
from paraforge.base.shards.resources import Resources
from paraforge.embeddings.unrolling.parameters import DecodersParameters, parse_representation
from paraforge.interface.cli.outputs import DECODERS, TRAINED_MODEL, check_output_directory
from paraforge.interface.cli.settings import (
    DEVELOPMENT,
    DEVICE_HELP,
    TEST_SETS,
    checked,
    column_pair,
    options_of,
    put_setting,
    score_lines,
)

if TYPE_CHECKING:
    from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters
    from paraforge.embeddings.trainer.train_model import EmbeddingsReport
    from paraforge.embeddings.unrolling.sentences import SentenceFile
    from paraforge.embeddings.unrolling.train_decoders import DecodersReport


def train(
    inputs: list[Path] = typer.Argument(
        metavar="PAIRS... OUTPUT", help="TSV or PPDB files, published corpora; last the model's directory"
    ),
    encoder: str = typer.Option(
        "", help="word (default), trigram, lstm, blstm, dan, ..., or several side by side: word+trigram"
    ),
    config: Path | None = typer.Option(
        None, help="YAML of a model's parameters, as one of embeddings.models in params.yaml"
    ),
    settings: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="one parameter, e.g. training.epochs=3, encoder.dimension=600"
    ),
    start: Path | None = typer.Option(None, metavar="MODEL", help="trained model to train further"),
    vectors: Path | None = typer.Option(None, help="word vectors to start from"),
    columns: str = typer.Option("", help="the two columns of the files, e.g. 2,3; counted from 0"),
    score_column: int | None = typer.Option(
        None, min=0, help="column of the pairs' scores, for losses that look at them"
    ),
    development: list[Path] = DEVELOPMENT,
    test_sets: list[Path] = TEST_SETS,
    drop_leaked: Path | None = typer.Option(
        None, metavar="DIR", help="leave out pairs with a sentence of these STS sets"
    ),
    keep_leaked: bool = typer.Option(
        False, "--keep-leaked", help="only report pairs with a sentence of a development or test set"
    ),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    threads: int = typer.Option(0, min=0, help="CPU threads; 0 is one per core"),
    checkpoint_seconds: float = typer.Option(300.0, min=0, help="between two checkpoints"),
    work: Path = typer.Option(Path("work"), help="where pairs and checkpoints are kept until the end"),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Train sentence embeddings on paraphrase pairs.

    Killed at any time, the same command resumes from its last checkpoint. OUTPUT appears when the model is
    finished.

    \b
    Examples:
      paraforge train data/corpus models/embeddings/word
      paraforge train pairs.tsv.gz ppdb-xl.gz models/embeddings/mixed --encoder word+trigram
      paraforge train my-pairs.tsv models/mine --start models/embeddings/word
      paraforge train data/corpus models/embeddings/best --encoder blstm --set encoder.output_dimension=900 \\
          --development sts/2017.track5.en-en.tsv --drop-leaked sts
    """
    from paraforge.embeddings.trainer.data import TrainingData
    from paraforge.embeddings.trainer.train_model import train_model

    if len(inputs) < 2:
        raise ConfigurationError(["PAIRS... OUTPUT: give at least one file or corpus, and the directory"])
    *pairs, output = inputs
    check_output_directory(output, force, TRAINED_MODEL)
    parameters = _parameters(encoder, config, settings, start=start, vectors=vectors)
    if drop_leaked is not None and keep_leaked:
        raise ConfigurationError(["--drop-leaked and --keep-leaked: give one of them"])
    data = TrainingData(
        *files_and_corpora(pairs, columns, score_column),
        [str(path) for path in development],
        [str(path) for path in test_sets],
        [] if drop_leaked is None else [str(drop_leaked)],
        not keep_leaked,
    )
    configure_logging("train")
    with graceful_interrupts():
        report = train_model(
            parameters,
            data,
            output,
            Resources(threads=threads, work=work),
            device=chosen_device(device),
            checkpoint_seconds=checkpoint_seconds,
        )
    typer.echo("\n".join(_lines(report)))


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
            raise InputError("no parameters of a model", config)
    try:
        if encoder:
            content["encoder"] = named_encoder(encoder)
    except ValueError as error:
        raise ConfigurationError([f"--encoder {encoder}: {error}"]) from error
    content |= {name: str(path) for name, path in paths.items() if path is not None}
    for setting in settings:
        put_setting(content, setting)
    return checked(ModelParameters, content)


def _lines(report: EmbeddingsReport) -> list[str]:
    lines = [
        report.signature,
        f"{counted(report.pairs, 'pair')}, {counted(len(report.history), 'evaluation')}, "
        f"{counted(report.updates, 'update')}, "
        f"{report.pairs_per_second:,.0f} pairs/s",
    ]
    if report.skipped:
        lines.append(f"{counted(report.skipped, 'pair')} left out: a side without a token")
    if report.passed_over:
        lines.append(f"{report.passed_over:,} times a pair was skipped: no text could be its negative")
    return [*lines, *score_lines(report.best_score, report.years)]


def files_and_corpora(
    pairs: list[Path], columns: str, score_column: int | None = None
) -> tuple[list[PairFileParameters], list[Path]]:
    """What PAIRS names: files of pairs, and directories, which are corpora; InputError: one is missing."""
    from paraforge.embeddings.trainer.parameters import PairFileParameters

    for path in pairs:
        if not path.exists():
            raise InputError("no such file or directory", path)
    wanted = column_pair(columns) if columns else None
    files = [
        PairFileParameters(path=str(path), columns=wanted, score_column=score_column)
        for path in pairs
        if not path.is_dir()
    ]
    return files, [path for path in pairs if path.is_dir()]


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
    from paraforge.embeddings.trainer.data import TrainingData
    from paraforge.embeddings.unrolling.train_decoders import train_decoders as train

    if len(inputs) < 2:
        raise ConfigurationError(["SENTENCES... OUTPUT: give at least one file, and the directory"])
    *paths, output = inputs
    check_output_directory(output, force, DECODERS)
    parameters = _decoder_parameters(values, representation, settings)
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
    typer.echo("\n".join(_decoder_lines(report)))


def _decoder_parameters(
    content: dict[str, Any], representation: str, settings: list[str]
) -> DecodersParameters:
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


def _decoder_lines(report: DecodersReport) -> list[str]:
    lines = [
        report.signature,
        f"{counted(report.seen, 'sentence')} seen, {counted(report.updates, 'update')}, "
        f"loss {report.history[-1]['loss']:.4f} nats a word, {report.sentences_per_second:,.0f} sentences/s",
    ]
    if report.skipped:
        lines.append(f"{counted(report.skipped, 'sentence')} left out: without a word")
    return [*lines, *score_lines(report.best_score, report.years)]
