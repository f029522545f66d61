"""``paraforge paraphrase``: paraphrase a file of sentences, one per line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from paraforge.interface.cli.spelling import DEVICE_HELP, SENTENCES, TRANSLATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from paraforge.products.paraphrasing.paraphraser import Search
    from paraforge.translation.decoding.translator import Translator


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
    from paraforge.interface.cli.translate import translate_file
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
