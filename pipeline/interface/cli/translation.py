"""``translate``, ``paraphrase``, ``model import`` and ``memory import``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.logs import counted
from paraforge.base.shards.resources import Resources, available_cores
from paraforge.interface.cli.settings import (
    DEVICE,
    FORCE,
    SENTENCES,
    SETTINGS,
    THREADS,
    TRANSLATIONS,
    check_output,
    check_parameters,
    group,
    settings_of,
    with_settings,
)
from paraforge.translation.decoding.translator import DecodingOptions

if TYPE_CHECKING:
    from paraforge.translation.decoding.translator import Translator


_DEFAULTS = DecodingOptions()


def translate(
    input_path: Path = SENTENCES,
    output_path: Path = TRANSLATIONS,
    model: Path = typer.Option(
        None, "--model", metavar="DIR", help="models/nmt, or a model from 'paraforge model import'"
    ),
    engine: str = typer.Option(
        "ctranslate2", help="ctranslate2, torch or fairseq; without a model: server or fake"
    ),
    beam: int = typer.Option(_DEFAULTS.beam, min=1, help="beam size"),
    nbest: int = typer.Option(_DEFAULTS.nbest, min=1, help="translations per sentence"),
    compute_type: str = typer.Option(_DEFAULTS.compute_type, help="float32, int8, ...; auto: the fastest"),
    settings: list[str] = SETTINGS,
    device: str = DEVICE,
    threads: int = THREADS,
    force: bool = FORCE,
) -> None:
    """Translate a file of sentences, one per line.

    The output has one line per translation: number of the input line, rank (0 is the best), mean natural
    log-probability per token, text. A sentence that cannot be translated has an empty score and text, and
    the command exits with 5.

    --set takes length_penalty, maximum_source_tokens, maximum_target_tokens, batch_tokens, and the engine's
    settings.

    \b
    Examples:
      paraforge translate news.cs.gz news.tsv --model models/nmt
      paraforge translate news.cs news.tsv.gz --model models/nmt --compute-type int8
      paraforge translate news.cs nbest.tsv --model models/nmt --nbest 12
      paraforge translate news.cs news.tsv --engine server --set model=NAME --set source_language=Czech
      cut -f2 pairs.tsv | paraforge translate - - --model models/nmt | cut -f4
    """
    from paraforge.translation.decoding.translator import Placement
    from paraforge.translation.engines import open_translator

    if nbest > beam:
        raise ConfigurationError([f"--nbest is {nbest}, but must be at most --beam ({beam})"])
    values: dict[str, Any] = {"beam": beam, "nbest": nbest, "compute_type": compute_type}
    batch_tokens, of_engine = 0, {}
    for key, value in settings_of(settings).items():
        if key == "batch_tokens":
            batch_tokens = check_parameters(Resources, {key: value}).batch_tokens
        elif key in DecodingOptions.model_fields:
            values[key] = value
        else:
            of_engine[key] = value
    options = check_parameters(DecodingOptions, values)
    placement = Placement(device, threads or available_cores(), batch_tokens)

    def prepare(sentences: Iterator[str]) -> tuple[Translator, Iterator[str]]:
        return open_translator(engine, model, options, placement, of_engine), sentences

    translate_file(input_path, output_path, force, prepare)


def translate_file(
    input_path: Path,
    output_path: Path,
    force: bool,
    prepare: Callable[[Iterator[str]], tuple[Translator, Iterator[str]]],
    doing: str = "translate",
) -> None:
    """Translate a file or a pipe with the translator that ``prepare`` opens. ``prepare`` gets the sentences
    and may change them. ``doing`` is the text of the progress display."""
    from paraforge.translation.stage.text_file import read_sentences, translate_lines

    check_output(output_path, force)
    # Checks the input before a large model is loaded.
    sentences = read_sentences(input_path)
    translator, sentences = prepare(sentences)
    translate_lines(translator, sentences, output_path, doing)


def paraphrase(
    input_path: Path = SENTENCES,
    output_path: Path = TRANSLATIONS,
    model: Path = typer.Option(
        ..., "--model", metavar="DIR", help="directory of the paraphraser, e.g. models/paraphraser"
    ),
    nbest: int = typer.Option(1, min=1, max=64, help="paraphrases per sentence"),
    settings: list[str] = SETTINGS,
    device: str = DEVICE,
    threads: int = THREADS,
    force: bool = FORCE,
) -> None:
    """Paraphrase a file of sentences, one per line, with a trained paraphraser.

    The output has one line per paraphrase: number of the input line, rank (0 is the best), mean natural
    log-probability per token, text. --set takes similarity, overlap, length (low, medium, high, or a value),
    template and beam.

    \b
    Examples:
      paraforge paraphrase news.txt paraphrases.tsv --model models/paraphraser --nbest 5
      paraforge paraphrase news.txt out.tsv --model models/paraphraser --set overlap=low
      echo "A man rides a horse." | paraforge paraphrase - - --model models/paraphraser | cut -f4
    """
    from paraforge.products.paraphrasing.paraphraser import Paraphraser, Wishes

    wishes = with_settings(Wishes, settings, {"nbest": nbest})

    def prepare(sentences: Iterator[str]) -> tuple[Translator, Iterator[str]]:
        opened = Paraphraser(model, device, threads)
        return opened.translator(wishes), opened.sources(sentences, wishes)

    translate_file(input_path, output_path, force, prepare, "paraphrase")


model = group("Import pretrained translation models. See models.md.")


@model.command("import")
def import_model_command(
    source: str = typer.Argument(metavar="SOURCE", help="path, or ORGANIZATION/NAME[@REVISION] on the Hub"),
    destination: Path = typer.Argument(metavar="DEST", help="directory to write"),
    source_language: str = typer.Option(
        None, "--from", help="source language, e.g. de or deu_Latn; default: from the model, or cs"
    ),
    target_language: str = typer.Option(None, "--to", help="target language; default: from the model, or en"),
    force: bool = FORCE,
) -> None:
    """Import a pretrained model for 'paraforge translate --model DEST' and nmt.model.

    SOURCE can be a Transformers model (Marian, OPUS-MT, M2M-100, NLLB), a fairseq checkpoint with
    dict.LANGUAGE.txt and a SentencePiece model or BPE codes, or a CTranslate2 model. Its embeddings,
    vocabulary and subwords must match. No code from the model is run.

    \b
    Examples:
      paraforge model import Helsinki-NLP/opus-mt-de-en models/de-en --from de
      paraforge model import facebook/nllb-200-distilled-600M models/nllb-de-en --from de
      paraforge model import checkpoints/checkpoint_best.pt models/cs-en
    """
    from paraforge.translation.models.importing import import_model

    check_output(destination, force, directory=True)
    description = import_model(
        source,
        destination,
        source_language=source_language,
        target_language=target_language,
    )
    typer.echo(f"{destination}: {description['origin']} model, fingerprint {description['fingerprint'][:16]}")
    typer.echo(f"Try it: echo ... | paraforge translate - - --model {quote(str(destination))}")


memory = group(
    "Import into the translation memory, which stores the translation of every sentence.\n\n"
    "It is a directory with a subdirectory of Parquet files for each combination of model, engine and "
    "options. Read it with DuckDB, copy it with cp, remove a subdirectory with rm -r."
)

_MEMORY = typer.Option(
    None,
    "--memory",
    metavar="DIR",
    help="directory of the memory; by default resources.translation_memory, or work/memory",
)


@memory.command("import")
def import_translations(
    paths: list[Path] = typer.Argument(metavar="FILE...", help="Parquet files"),
    name: str = typer.Option(..., "--name", help="name of these translations, for translate.imported.name"),
    memory: Path | None = _MEMORY,
) -> None:
    """Add translations from another system to the memory.

    A file has the columns sentence (as source_text in data/ingested) and hypotheses (a text, or a list of
    texts with the best first), and optionally scores (mean log-probabilities per token). Sentences
    that the memory already has are not changed.

    \b
    Examples:
      paraforge memory import marian.parquet --name marian-2024
      paraforge configure translation=imported translate.imported.name=marian-2024
    """
    from paraforge.translation.memory.memory import import_file

    root = memory_directory(memory)
    for path in paths:
        files, sentences = import_file(path, root, name)
        typer.echo(f"{path}: imported {counted(sentences, 'sentence')} into {files.path}", err=True)


def memory_directory(memory: Path | None) -> Path:
    """Return the given directory, or the memory of the project here."""
    from paraforge.base.shards.resources import Resources
    from paraforge.interface.configuration import PARAMETERS, load_parameters

    if memory is not None:
        if memory.exists() and not memory.is_dir():
            raise InputError("not a directory", memory)
        return memory
    resources = load_parameters().resources if PARAMETERS.is_file() else Resources()
    return resources.memory_directory()
