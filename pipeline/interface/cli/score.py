"""``paraforge score``: score pairs of reference and translation from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError
from paraforge.base.logs import counted
from paraforge.interface.cli.settings import DEVICE, FORCE, WORKERS, check_parameters, check_table

if TYPE_CHECKING:
    from paraforge.corpus.selection.filters.bounds import BoundsParameters


_MODEL_OPTIONS = {"cosine": "sentence-transformer", "cross_encoder": "cross-encoder"}


def score(
    input_path: Path = typer.Argument(
        metavar="INPUT", help="TSV or CSV (plain, gz, bz2, xz, zst) or Parquet"
    ),
    output: Path = typer.Argument(
        metavar="OUTPUT",
        help="file to write: .parquet, .csv, .tsv, .json, .jsonl (text also with .gz)",
    ),
    vectors: Path | None = typer.Option(
        None,
        help="word vectors (a file or a table such as models/paragram) or a trained model; by default the "
        "built-in English scorer",
    ),
    reference: str = typer.Option("", help="reference column: number from 0 (default 0) or name"),
    translation: str = typer.Option("", help="translation column: number from 0 (default 1) or name"),
    header: bool = typer.Option(False, "--header", help="the first line of a TSV or CSV names its columns"),
    languages: str = typer.Option(
        "", help="identify the language of both sides: codes of possible languages (e.g. en,cs,de), or all"
    ),
    sentence_transformer: Path | None = typer.Option(
        None, metavar="DIR", help="add the column cosine from this sentence-transformers model"
    ),
    cross_encoder: Path | None = typer.Option(
        None, metavar="DIR", help="add the column cross_encoder from this sentence-transformers cross-encoder"
    ),
    minimum: list[str] = typer.Option(
        [], metavar="[SCORE=]X", help="reject pairs with a lower score; SCORE is paraphrase_score by default"
    ),
    maximum: list[str] = typer.Option(
        [], metavar="SCORE=X", help="reject pairs with a higher score, e.g. contradiction=0.8"
    ),
    wrong_pairs: list[str] = typer.Option(
        [],
        metavar="[SCORE=]SHARE",
        help="reject pairs below the score that at most this share of mismatched pairs reaches",
    ),
    device: str = DEVICE,
    workers: int = WORKERS,
    force: bool = FORCE,
) -> None:
    """Score pairs of English sentences, and print a verdict on the scores.

    OUTPUT has the scores as columns. For a TSV or CSV, it also has line, reference and translation; for
    Parquet, all columns of the input. The verdict shows how well each score separates these pairs from
    mismatched ones. Rejected pairs stay in OUTPUT, with the reason in the column rejected.

    \b
    Examples:
      paraforge score pairs.tsv.gz scored.parquet
      paraforge score pairs.tsv.gz scored.csv --wrong-pairs 0.01 --maximum contradiction=0.8
      paraforge score pairs.parquet scored.parquet --vectors glove.txt.gz --reference en --translation mt
    """
    from paraforge.base.shards.resources import Resources
    from paraforge.base.text.paths import require_regular
    from paraforge.base.word_vectors.vectors import table_directory
    from paraforge.corpus.publication.verdict_words import verdict_words
    from paraforge.corpus.scoring import general
    from paraforge.corpus.scoring.parameters import ScoreParameters
    from paraforge.corpus.scoring.word_scorer import WordScorer
    from paraforge.corpus.selection.parameters import explain_filters
    from paraforge.corpus.selection.score_file import is_parquet, score_file
    from paraforge.corpus.selection.thresholds import MAIN_SCORE, verdict
    from paraforge.interface.query.database import parquet_of
    from paraforge.products.loading import load_fixed

    bounds = _bounds(minimum, maximum, wrong_pairs)
    require_regular(input_path)
    check_table(output, force)
    if is_parquet(input_path):
        columns: dict[str, int | str] = {
            "reference": reference or "reference",
            "translation": translation or "translation",
        }
    else:
        columns = {
            "reference": _tsv_column(reference or "0", "--reference", header),
            "translation": _tsv_column(translation or "1", "--translation", header),
        }
    parameters = check_parameters(
        ScoreParameters,
        {
            "identify_language": bool(languages),
            "languages": None if languages in ("", "all") else [*map(str.strip, languages.split(","))],
            "sentence_transformer": None if sentence_transformer is None else str(sentence_transformer),
            "cross_encoder": None if cross_encoder is None else str(cross_encoder),
        },
    )
    directory = general.DIRECTORY if vectors is None else table_directory(vectors)
    models = {"cosine": sentence_transformer, "cross_encoder": cross_encoder}
    for bound in bounds:
        if models.get(bound.score, True) is None:
            option = _MODEL_OPTIONS[bound.score]
            raise ConfigurationError([f"{bound.score}: pass the model's directory with --{option}"])
    judged = [MAIN_SCORE, *(score for score, model in models.items() if model)]
    with parquet_of(output) as parquet:
        scored = score_file(
            input_path,
            parquet,
            parameters,
            directory,
            columns,
            header,
            Resources(workers=workers, devices=[chosen_device(device) if any(models.values()) else "cpu"]),
            load_fixed,
            bounds,
        )
    typer.echo(f"{output}: {counted(scored.rows, 'pair')}", err=True)
    if bounds:
        explained = explain_filters(scored.bounds)
        for reason, number in scored.counts.rejected.most_common():
            typer.echo(f"{number:,} rejected: {explained.get(reason, reason)}", err=True)
    words = verdict_words(verdict(scored.bounds, scored.wrong_pairs, {}, judged), scored.counts.kept)
    doubts = []
    if vectors is None and (doubt := WordScorer.open(directory).doubt_about(scored.wrong_pairs["reference"])):
        doubts = [f"{doubt} For another language, pass --vectors."]
    for line in (*words, *doubts):
        typer.echo(line)


def _bounds(minima: list[str], maxima: list[str], shares: list[str]) -> list[BoundsParameters]:
    """Return the filters for the options. Raises ConfigurationError if a score or a value is wrong."""
    from pydantic import ValidationError

    from paraforge.base.section import problems_of
    from paraforge.corpus.selection.filters.bounds import BoundsParameters

    bounds: list[BoundsParameters] = []
    for option, texts in (("minimum", minima), ("maximum", maxima), ("wrong-pairs", shares)):
        for text in texts:
            score, equals, value = text.rpartition("=")
            if option == "maximum" and not equals:
                raise ConfigurationError([f"--{option} {text}: use SCORE=NUMBER, e.g. contradiction=0.9"])
            limit: dict[str, object] = {option: value}
            if option == "wrong-pairs":
                limit = {"minimum": {"wrong_pairs": value}}
            missing = "accept" if option == "maximum" else "refuse"
            content = {"kind": "bounds", "score": score or "paraphrase_score", "missing": missing, **limit}
            try:
                bounds.append(BoundsParameters.model_validate(content))
            except ValidationError as error:
                raise ConfigurationError([f"--{option} {text}: {problems_of(error)[0]}"]) from error
    if len({bound.score for bound in bounds}) < len(bounds):
        raise ConfigurationError(["two bounds on one score: use each score once"])
    return bounds


def _tsv_column(value: str, option: str, header: bool) -> int | str:
    """Return a column of a TSV: a number from 0, or a name in the header."""

    if value.isdecimal() and value.isascii():
        return int(value)
    if header:
        return value
    raise ConfigurationError([f"{option} {value}: expected a column number from 0, or with --header a name"])
