"""``paraforge model import``: a ready translation model, in the layout that everything here reads."""

from pathlib import Path
from shlex import quote

import typer

from paraforge.interface.cli.settings import FORCE, check_output, group

app = group("Import ready translation models. See models.md.")


@app.callback()
def _model() -> None:
    """Keep this a group, though it has one command."""


@app.command("import")
def import_command(
    source: str = typer.Argument(metavar="SOURCE", help="path of a model, or ORGANISATION/NAME[@REVISION]"),
    destination: Path = typer.Argument(metavar="DEST", help="directory to write"),
    source_language: str = typer.Option(
        None, "--from", help="language of the sources, e.g. de, deu_Latn; what the model says, or cs"
    ),
    target_language: str = typer.Option(
        None, "--to", help="language of the translations; what the model says, or en"
    ),
    force: bool = FORCE,
) -> None:
    """Import a ready model, so that 'paraforge translate --model DEST' and nmt.model can use it.

    SOURCE may be Transformers (Marian, OPUS-MT of the hub, M2M-100, NLLB), a fairseq checkpoint with
    dict.LANGUAGE.txt and SentencePiece model or BPE codes, or CTranslate2. Embeddings, vocabulary and
    subwords must fit; no code of a model is run.

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
