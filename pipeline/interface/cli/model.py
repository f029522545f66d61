"""``paraforge model import``: convert a ready translation model to Paraforge's layout."""

from pathlib import Path
from shlex import quote

import typer

from paraforge.interface.cli.settings import FORCE, check_output, group

app = group("Import ready translation models. See models.md.")


@app.callback()
def _model() -> None:
    """Make this a group, although it has only one command."""


@app.command("import")
def import_command(
    source: str = typer.Argument(metavar="SOURCE", help="path, or ORGANIZATION/NAME[@REVISION] on the Hub"),
    destination: Path = typer.Argument(metavar="DEST", help="directory to write"),
    source_language: str = typer.Option(
        None, "--from", help="source language, e.g. de or deu_Latn; default: from the model, or cs"
    ),
    target_language: str = typer.Option(None, "--to", help="target language; default: from the model, or en"),
    force: bool = FORCE,
) -> None:
    """Import a ready model for 'paraforge translate --model DEST' and nmt.model.

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
    languages = [description[f"{side}_language"] for side in ("source", "target")]
    asked = [source_language or languages[0], target_language or languages[1]]
    if asked != languages:
        was, wanted = (" to ".join(pair) for pair in (languages, asked))
        typer.echo(f"already imported, from {was}; its languages were not changed to {wanted}", err=True)
    typer.echo(f"Try it: echo ... | paraforge translate - - --model {quote(str(destination))}")
