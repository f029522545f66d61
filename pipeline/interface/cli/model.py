"""``paraforge model``: import a ready translation model, and check one."""

from pathlib import Path
from shlex import quote

import typer

from paraforge.base.errors import IncompleteError
from paraforge.interface.cli.settings import FORCE, check_output, checked, group

app = group("Import and check ready translation models. See models.md.")


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
    source_prefix: list[str] = typer.Option(
        [], help="token before every source, where the model's tokeniser does not put it; may be repeated"
    ),
    source_suffix: list[str] = typer.Option([], help="token after every source; may be repeated"),
    target_prefix: list[str] = typer.Option(
        [], help="token that every translation begins with; may be repeated"
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
        affixes={
            "source_prefix": source_prefix or None,
            "source_suffix": source_suffix or None,
            "target_prefix": target_prefix or None,
        },
    )
    typer.echo(f"{destination}: {description['origin']} model, fingerprint {description['fingerprint'][:16]}")
    languages = [description[f"{side}_language"] for side in ("source", "target")]
    asked = [source_language or languages[0], target_language or languages[1]]
    if asked != languages:
        was, wanted = (" to ".join(pair) for pair in (languages, asked))
        typer.echo(f"already imported, from {was}; its languages were not changed to {wanted}", err=True)
    typer.echo(f"Try it: echo ... | paraforge translate - - --model {quote(str(destination))}")


@app.command()
def check(
    model: Path = typer.Argument(metavar="MODEL", help="directory of a model, e.g. models/nmt"),
    sentence: str = typer.Argument("", metavar="SENTENCE", help="a sentence to translate"),
    engine: str = typer.Option("ctranslate2", help="engine to open it with"),
    beam: int = typer.Option(4, min=1, max=128, help="width of the beam"),
    compute_type: str = typer.Option("float32", help="float32, int8, ... or auto: the fastest"),
) -> None:
    """Check a translation model: file checksums, vocabulary size, and that an engine can open it.

    \b
    Examples:
      paraforge model check models/nmt
      paraforge model check models/de-en "Der Hund schläft."
      paraforge model check models/de-en "Der Hund schläft." --compute-type int8
    """
    from paraforge.translation.decoding.translator import DecodingOptions, Placement
    from paraforge.translation.engines import open_translator
    from paraforge.translation.models.importers.ctranslate2 import check_embeddings
    from paraforge.translation.models.model import open_model

    options = checked(DecodingOptions, {"beam": beam, "compute_type": compute_type})
    opened = open_model(model, engine)
    folder = opened.folders.get("ctranslate2")
    if folder is not None:
        check_embeddings(folder, folder)
    translator = open_translator(engine, opened, options, Placement("cpu"))
    found = next(iter(translator.translate([sentence])), None) if sentence else None
    typer.echo(f"{model}: OK; the engine {engine} can open it")
    if found is not None:
        if found.failed or not found.hypotheses:
            raise IncompleteError(f"the sentence could not be translated: {found.failed}")
        best = found.hypotheses[0]
        typer.echo(f"{best.score:.4f}  {best.text}")
