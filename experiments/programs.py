"""What the tables need and the command line lacks: ``python -m experiments.programs PROGRAM ...``.

SIF (Arora 2017), counter-fitting (Mrksic 2016), decoders on running text (Zhelezniak 2018) and the expansion
of their vocabulary. Outputs are replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError, ParaforgeError
from paraforge.base.interrupts import graceful_interrupts, last_words
from paraforge.base.logs import configure_logging, counted
from paraforge.base.shards.resources import Resources
from paraforge.interface.cli.settings import checked, put_setting, score_lines

if TYPE_CHECKING:
    from paraforge.embeddings.unrolling.train_decoders import DecodersReport

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_NONE: list[Path] = []


@app.command()
def sif(
    vectors: Path,
    output: Path,
    counts: Path | None = None,
    fit: list[Path] = _NONE,
    a: float = 1e-3,
    components: int = 1,
    weights: str = "sif",
) -> None:
    """Fit averages weighted by smooth inverse frequency, without their common component."""
    from paraforge.embeddings.evaluation.baselines.sif import describe_average, fit_sif, save_sif
    from paraforge.products.loading import open_word_vectors

    with graceful_interrupts():
        model, about = fit_sif(vectors, counts, fit, weights, a, components, open_word_vectors)
        save_sif(model, output, about)
    typer.echo(f"{output}: {describe_average(model)}")


@app.command()
def fit_words(
    vectors: Path,
    output: Path,
    synonyms: list[Path] = _NONE,
    antonyms: list[Path] = _NONE,
    without: list[Path] = _NONE,
) -> None:
    """Move word vectors so that synonyms are near and antonyms are not, without the pairs of some lists."""
    from paraforge.embeddings.evaluation.similarity.word_lists import read_similarity_lists
    from paraforge.embeddings.learning.counter_fitting import counter_fit, read_word_pairs
    from paraforge.products.loading import open_word_vectors

    if not synonyms and not antonyms:
        raise ConfigurationError(["give --synonyms, --antonyms or both"])
    left_out = {(min(pair), max(pair)) for judged in read_similarity_lists(without) for pair in judged.pairs}
    near, apart = read_word_pairs(synonyms) - left_out, read_word_pairs(antonyms) - left_out
    with graceful_interrupts():
        fitted, used = counter_fit(open_word_vectors(vectors), near - apart, apart)
        fitted.write_text(output, header=True)
    typer.echo(
        f"{output}: {counted(used['synonyms'], 'pair')} of synonyms, {used['antonyms']:,} of antonyms",
        err=True,
    )


@app.command()
def expand(model: Path, vectors: Path, output: Path) -> None:
    """Give trained decoders vectors of words that they were not trained on (Kiros et al. 2015)."""
    from paraforge.embeddings.unrolling.model import DecoderModel
    from paraforge.embeddings.unrolling.model import expand as expanded
    from paraforge.products.loading import open_word_vectors

    with graceful_interrupts():
        larger = expanded(DecoderModel.open(model), open_word_vectors(vectors))
        larger.save(output)
    counts = larger.about["expanded"]
    typer.echo(f"{output}: {counted(counts['words'], 'word')} more, by a map fitted on {counts['shared']:,}")


@app.command()
def train_decoders(
    sentences: Path,
    output: Path,
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE"),
    representation: str = "",
    document_columns: str = "",
    test_sets: list[Path] = typer.Option([], "--test"),
    device: str = "auto",
    threads: int = 0,
    checkpoint_seconds: float = 300.0,
    work: Path = Path("work"),
) -> None:
    """Train an encoder with decoders that predict a sentence's neighbours in running text."""
    from paraforge.embeddings.trainer.data import TrainingData
    from paraforge.embeddings.unrolling.parameters import DecodersParameters, parse_representation
    from paraforge.embeddings.unrolling.sentences import SentenceFile
    from paraforge.embeddings.unrolling.train_decoders import train_decoders as train

    content = DecodersParameters().model_dump()
    if representation:
        content["representation"] = parse_representation(representation).model_dump()
    for setting in settings:
        put_setting(content, setting)
    columns = tuple(int(number) for number in document_columns.split(",")) if document_columns else None
    configure_logging("train-decoders")
    with graceful_interrupts():
        report = train(
            checked(DecodersParameters, content),
            [SentenceFile(sentences, "auto", None, columns)],
            output,
            Resources(threads=threads, work=work),
            judges=TrainingData(test_sets=[str(path) for path in test_sets]),
            device=chosen_device(device),
            checkpoint_seconds=checkpoint_seconds,
        )
    typer.echo("\n".join(_lines(report)))


def _lines(report: DecodersReport) -> list[str]:
    return [
        report.signature,
        f"{counted(report.seen, 'sentence')} seen, {counted(report.updates, 'update')}, "
        f"loss {report.history[-1]['loss']:.4f} nats a word, {report.sentences_per_second:,.0f} sentences/s",
        *score_lines(report.best_score, report.years),
    ]


def main() -> None:
    """Entry point: errors are one line and an exit code, as on the command line."""
    with last_words():
        try:
            app()
        except ParaforgeError as error:
            typer.echo(str(error), err=True)
            raise SystemExit(error.exit_code) from error


if __name__ == "__main__":
    main()
