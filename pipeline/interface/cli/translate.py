"""``translate`` and ``paraphrase``: a file of sentences, one per line, into others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import typer

from paraforge.base.errors import ConfigurationError
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.shards.resources import available_cores
from paraforge.interface.cli.outputs import check_output_file, text_lines
from paraforge.interface.cli.settings import (
    DEVICE_HELP,
    SENTENCES,
    TRANSLATIONS,
    options_of,
    put_setting,
)
from paraforge.interface.cli.settings import checked as checked_values
from paraforge.translation.decoding.translator import DecodingOptions

if TYPE_CHECKING:
    from paraforge.products.paraphrasing.paraphraser import Search
    from paraforge.translation.decoding.translator import Translator
    from paraforge.translation.stage.quantisation import Check


@options_of(
    DecodingOptions,
    *("beam", "nbest", "compute_type", "length_penalty"),
    max_source_tokens="maximum_source_tokens",
    max_target_tokens="maximum_target_tokens",
)
def translate(
    values: dict[str, Any],
    input_path: Path = SENTENCES,
    output_path: Path = TRANSLATIONS,
    model: Path = typer.Option(
        None,
        "--model",
        metavar="DIR",
        help="models/nmt, a CTranslate2 or fairseq directory; OPUS-MT, ... is converted once",
    ),
    engine: str = typer.Option(
        "ctranslate2", help="ctranslate2, torch, fairseq; without a model: server, fake"
    ),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    threads: int = typer.Option(0, min=0, help="CPU threads; 0 is one per core"),
    batch_tokens: int = typer.Option(0, min=0, help="source tokens of a batch; 0 lets the engine choose"),
    check: str = typer.Option(
        "fallback", help="of int8 and int16: fallback to float32 where they lose too much, error, or skip"
    ),
    setting: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="a setting of the engine, as params.yaml has it under its name"
    ),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Translate a file of sentences, one per line.

    The output has a line for each hypothesis: number of the input line, rank (0 is the best), mean natural
    log-probability per token, text. A sentence that cannot be translated has an empty score and text, and
    the command then exits with 5.

    Before anything is translated in int8 or int16, the first 1,000 sentences are translated both ways, once
    for a model and its options. Unless they show that the float32 model finds its own translations less than
    0.02 nats a token more probable, everything is translated in float32; so is a text of fewer than 2,000
    sentences that comes first. 'paraforge model check --bitext' checks any model by hand.

    \b
    Examples:
      paraforge translate news.cs.gz news.tsv --model models/nmt
      paraforge translate news.cs news.tsv.gz --model models/nmt --compute-type int8
      paraforge translate news.cs nbest.tsv --model models/nmt --nbest 12
      paraforge translate news.cs varied.tsv --model models/nmt --engine torch --nbest 3 --set groups=3
      paraforge translate news.cs news.tsv --engine server --set model=NAME --set source_language=Czech
      cut -f2 pairs.tsv | paraforge translate - - --model models/nmt | cut -f4
    """
    from paraforge.translation.decoding.translator import Placement
    from paraforge.translation.engines import is_model_free, open_translator
    from paraforge.translation.engines.ctranslate2 import NAME
    from paraforge.translation.models.importing import usable_model
    from paraforge.translation.stage.quantisation import checked

    if values["nbest"] > values["beam"]:
        raise ConfigurationError(
            [f"--nbest is {values['nbest']}: it has to be at most --beam, {values['beam']}"]
        )
    options = checked_values(DecodingOptions, values)
    placement = Placement(device, threads or available_cores(), batch_tokens)
    chosen = _check(check)

    def prepare(sentences: Iterator[str]) -> tuple[Translator, Iterator[str]]:
        path, decoding = model, options
        if path is not None and not is_model_free(engine):
            path = usable_model(path, engine)
        if engine == NAME and path is not None:
            decoding, sentences = checked(path, options, placement, sentences, chosen)
        translator = open_translator(engine, path, decoding, placement, _settings(setting))
        return translator, sentences

    translate_file(input_path, output_path, force, prepare)


def translate_file(
    input_path: Path,
    output_path: Path,
    force: bool,
    prepare: Callable[[Iterator[str]], tuple[Translator, Iterator[str]]],
    doing: str = "translate",
) -> None:
    """Translate a file or a pipe with the translator that ``prepare`` opens, which also gets, and may change,
    the sentences. ``doing`` is what the progress display says."""
    from paraforge.translation.stage.text_file import read_sentences, translate_lines

    lines = text_lines("translations", r"\d+\t\d+\t(-?\d+\.\d+)?\t.*", repeated=True)
    check_output_file(None if output_path == Path("-") else output_path, force, lines)
    # Looks at the input before a large model is loaded.
    sentences = read_sentences(input_path)
    with graceful_interrupts():
        translator, sentences = prepare(sentences)
        translate_lines(translator, sentences, output_path, doing)


def _check(given: str) -> Check:

    from paraforge.translation.stage.quantisation import Check

    if given not in get_args(Check):
        raise ConfigurationError([f"--check {given}: there are {', '.join(get_args(Check))}"])
    return cast("Check", given)


def _settings(given: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        put_setting(found, f"{key}=''" if equals and not value else text)  # nothing is an empty text
    return found


def paraphrase(
    input_path: Path = SENTENCES,
    output_path: Path = TRANSLATIONS,
    model: Path = typer.Option(..., "--model", metavar="DIR", help="models/paraphraser"),
    similarity: str = typer.Option(
        None, metavar="BUCKET", help="closeness in meaning: low, medium, high, a number from 1, or a value"
    ),
    overlap: str = typer.Option(
        None, metavar="BUCKET", help="share of words that both sides have; as --similarity"
    ),
    length: str = typer.Option(
        None, metavar="BUCKET", help="tokens of the paraphrase / tokens of the source; as --similarity"
    ),
    template: str = typer.Option(
        None, metavar="TREE", help="top two levels of the paraphrase's parse, e.g. '(S (NP) (VP) (.))'"
    ),
    like: str = typer.Option(None, metavar="SENTENCE", help="take the template of this sentence"),
    parser: str = typer.Option(None, help="parser of --like: link-grammar, stanza; by default the model's"),
    nbest: int = typer.Option(1, min=1, max=64, help="paraphrases of a sentence"),
    search: str = typer.Option("beam", help="beam, diverse (a group of the beam for each) or sample"),
    beam: int = typer.Option(8, min=1, max=128, help="width of the beam, at least --nbest"),
    diversity: float = typer.Option(1.0, min=0, help="of diverse: nats for a token of an earlier group"),
    temperature: float = typer.Option(1.0, min=0.01, help="of sample: logits are divided by it"),
    top_k: int = typer.Option(10, min=0, help="of sample: among this many most probable tokens; 0: all"),
    seed: int = typer.Option(1, help="of sample: another seed draws others"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    threads: int = typer.Option(0, min=0, help="CPU threads; 0 is one per core"),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Paraphrase a file of sentences, one per line, with a model of the stage paraphraser.

    The output has a line for each paraphrase: number of the input line, rank (0 is the best), mean natural
    log-probability per token, text. What is not asked for is left to the model.

    \b
    Examples:
      paraforge paraphrase news.txt paraphrases.tsv --model models/paraphraser
      paraforge paraphrase news.txt.gz out.tsv.gz --model models/paraphraser --overlap low --similarity high
      paraforge paraphrase news.txt out.tsv --model models/paraphraser --template "(S (NP) (VP) (.))"
      paraforge paraphrase news.txt out.tsv --model models/paraphraser --nbest 5 --search diverse
      echo "A man rides a horse." | paraforge paraphrase - - --model models/paraphraser | cut -f4
    """
    from paraforge.products.paraphrasing.paraphraser import Paraphraser

    def prepare(sentences: Iterator[str]) -> tuple[Translator, Iterator[str]]:
        opened = Paraphraser(model, device, threads)
        sources = opened.sources(
            sentences,
            similarity=similarity,
            overlap=overlap,
            length=length,
            template=template,
            like=like,
            parser=parser,
        )
        translator = opened.translator(
            nbest=nbest,
            search=cast("Search", search),
            beam=beam,
            diversity=diversity,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
        )
        return translator, sources

    translate_file(input_path, output_path, force, prepare, "paraphrase")
