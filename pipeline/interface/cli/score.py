"""``paraforge score``: score pairs of reference and translation from a file."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.interrupts import graceful_interrupts
from paraforge.base.logs import counted
from paraforge.interface.cli.outputs import check_output_file, table
from paraforge.interface.cli.settings import DEVICE_HELP

if TYPE_CHECKING:
    from paraforge.corpus.selection.filters.bounds import BoundsParameters


_MODEL_OPTIONS = {"cosine": "sentence-transformer", "cross_encoder": "cross-encoder"}


def score(
    input_path: Path = typer.Argument(
        metavar="INPUT", help="TSV or CSV (plain, gz, bz2, xz, zst) or Parquet"
    ),
    output: Path = typer.Argument(
        metavar="OUTPUT", help="file to write: .parquet, .csv, .tsv, .json, .jsonl; texts as .gz, too"
    ),
    vectors: Path | None = typer.Option(
        None,
        help="word vectors: a file (word2vec, GloVe or paragram format) or a table such as models/paragram; "
        "or a trained model's directory; by default the built-in English scorer",
    ),
    reference: str = typer.Option(
        "", help="reference column: its number from 0 (default 0) or name; a Parquet file's name"
    ),
    translation: str = typer.Option("", help="translation column: its number (default 1) or name"),
    header: bool = typer.Option(False, "--header", help="the first line of a TSV or CSV names its columns"),
    identify_language: bool = typer.Option(
        False, "--identify-language", help="add the languages of both sides (needs the extra language)"
    ),
    languages: str = typer.Option("", help="codes of the languages to tell apart, e.g. en,cs,de"),
    sentence_transformer: Path | None = typer.Option(
        None, help="add the cosine under the sentence-transformers model in this directory"
    ),
    cross_encoder: Path | None = typer.Option(
        None, help="add what the cross-encoder of sentence-transformers in this directory says"
    ),
    minimum: float | None = typer.Option(
        None, help="reject pairs with a lower score: a column 'rejected' gives the reason"
    ),
    wrong_pairs: float | None = typer.Option(
        None, help="the same, with the minimum that at most this share of wrong pairs reaches, e.g. 0.01"
    ),
    maximum: list[str] = typer.Option(
        [], metavar="SCORE=X", help="reject pairs above this, e.g. contradiction=0.9; may be repeated"
    ),
    by: str = typer.Option("paraphrase_score", help="the score that pairs are rejected by"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    workers: int = typer.Option(0, min=0, help="processes; 0 is one per core"),
    form: str | None = typer.Option(
        None, "--format", "-f", help="parquet, csv, tsv, json or jsonl; by default OUTPUT's ending"
    ),
    force: bool = typer.Option(False, "--force", help="overwrite OUTPUT"),
) -> None:
    """Score pairs: lengths, paraphrase score, n-gram overlaps, copy rate, signs of bad translations.

    OUTPUT has the columns of a published corpus: for a TSV or CSV line, reference, translation and the
    scores; for a Parquet file all its columns and the scores.

    A verdict says how well the score tells these pairs from wrong ones, which have the translation of another
    pair. Rejected pairs stay in OUTPUT.

    A vector file is converted once; its memory-mapped table is kept in ~/.cache/paraforge/vectors.

    \b
    Examples:
      paraforge score pairs.tsv.gz scored.parquet
      paraforge score pairs.tsv.gz scored.csv --wrong-pairs 0.01 --maximum contradiction=0.9
      paraforge score pairs.tsv.gz scored.parquet --vectors paragram_300_sl999.txt
      paraforge score pairs.tsv scored.parquet --vectors models/paragram --reference 2 --translation 3
      paraforge score pairs.parquet scored.parquet --vectors glove.txt.gz --reference en --translation mt
    """
    from paraforge.base.shards.resources import Resources
    from paraforge.base.text.paths import require_regular
    from paraforge.base.word_vectors.vectors import table_directory
    from paraforge.corpus.publication.verdict_words import words_of
    from paraforge.corpus.scoring import general
    from paraforge.corpus.scoring.parameters import ScoreParameters
    from paraforge.corpus.scoring.score_file import is_parquet, score_file
    from paraforge.corpus.scoring.word_scorer import WordScorer
    from paraforge.corpus.selection.marking import Marking
    from paraforge.corpus.selection.reasons import explain_filters
    from paraforge.corpus.selection.thresholds import MAIN_SCORE
    from paraforge.interface.query.output import TABLE, chosen_format, parquet_as
    from paraforge.products.loading import load_fixed

    bounds = [*_bounds(by, minimum, wrong_pairs), *map(_maximum, maximum)]
    if len({one.score for one in bounds}) < len(bounds):
        raise ConfigurationError(["two bounds on one score: use each score once"])
    require_regular(input_path)
    kind = chosen_format(form, output)
    if kind == TABLE:
        raise InputError("scores are not written as a table", remedy="Use parquet, csv, tsv, json or jsonl.")
    check_output_file(output, force, table("a table", kind, ["paraphrase_score", "overlap_3"]))
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
    directory = general.DIRECTORY if vectors is None else table_directory(vectors)
    models = {"cosine": sentence_transformer, "cross_encoder": cross_encoder}
    if models.get(by, True) is None:
        raise ConfigurationError([f"--by {by}: give the model's directory with --{_MODEL_OPTIONS[by]}"])
    judged = [MAIN_SCORE, *(score for score, model in models.items() if model)]
    markings: list[Marking] = []

    def finish(wrong: Any) -> Callable[[Any], Any] | None:
        markings.append(Marking(bounds, wrong, judged, "--wrong-pairs"))
        return markings[0].marked if bounds else None

    with graceful_interrupts(), parquet_as(kind, output) as parquet:
        scored = score_file(
            input_path,
            parquet,
            ScoreParameters(
                identify_language=identify_language or bool(languages),
                languages=[code.strip() for code in languages.split(",")] if languages else None,
                sentence_transformer=None if sentence_transformer is None else str(sentence_transformer),
                cross_encoder=None if cross_encoder is None else str(cross_encoder),
            ),
            directory,
            columns,
            header,
            Resources(workers=workers, devices=[chosen_device(device) if any(models.values()) else "cpu"]),
            load_fixed,
            finish,
        )
    marking = markings[0]
    typer.echo(f"{output}: {counted(scored.rows, 'pair')}", err=True)
    if bounds:
        explained = explain_filters(marking.parameters)
        for reason, number in marking.counts.rejected.most_common():
            typer.echo(f"{number:,} rejected: {explained.get(reason, reason)}", err=True)
    words = words_of(marking.verdict, marking.parameters, marking.counts, scored.sources)
    doubts = []
    if vectors is None and (doubt := WordScorer.open(directory).doubt_about(scored.wrong_pairs["reference"])):
        doubts = [f"{doubt} For another language give --vectors."]
    for line in (*words.sentences, *words.warnings, *doubts):
        typer.echo(line)


def _bounds(score: str, minimum: float | None, share: float | None) -> list[BoundsParameters]:
    """The filter that is asked for, if one is. Raises ConfigurationError: no such filter."""
    from paraforge.corpus.scoring.wrong_pairs import judged_scores
    from paraforge.corpus.selection.filters.bounds import BoundsParameters, WrongPairs
    from paraforge.interface.configuration.places import suggestion

    if score not in (judged := judged_scores()):
        close = suggestion(score, judged)
        raise ConfigurationError([f"--by {score}: one of {', '.join(judged)}{close}"])
    if minimum is not None and share is not None:
        raise ConfigurationError(["give --minimum or --wrong-pairs, not both"])
    if minimum is not None:
        if not isfinite(minimum):
            raise ConfigurationError([f"--minimum {minimum}: a number is expected"])
        return [_checked("--minimum", score, {"minimum": minimum})]
    if share is None:
        return []
    if not 0 <= share < 1:
        raise ConfigurationError([f"--wrong-pairs {share}: a share of 0 to less than 1 is expected"])
    return [BoundsParameters(kind="bounds", score=score, minimum=WrongPairs(wrong_pairs=share))]


def _maximum(given: str) -> BoundsParameters:
    """Read one ``--maximum SCORE=X``. Raises ConfigurationError if it is not a bound on a score."""
    score, separator, number = given.partition("=")
    try:
        bound = float(number)
    except ValueError:
        bound = nan
    if not separator or not isfinite(bound):
        raise ConfigurationError([f"--maximum {given}: use SCORE=NUMBER, e.g. contradiction=0.9"])
    return _checked("--maximum", score, {"maximum": bound})


def _checked(option: str, score: str, bounds: dict[str, float]) -> BoundsParameters:
    """The filter. Raises ConfigurationError if the score is unknown or a bound is outside its scale."""
    from pydantic import ValidationError

    from paraforge.corpus.selection.filters import SCORES
    from paraforge.corpus.selection.filters.bounds import BoundsParameters
    from paraforge.interface.configuration.places import suggestion

    if score not in SCORES:
        raise ConfigurationError([f"{option}: there is no score '{score}'{suggestion(score, SCORES)}"])
    missing = "accept" if "maximum" in bounds else "refuse"
    try:
        return BoundsParameters.model_validate(
            {"kind": "bounds", "score": score, "missing": missing, **bounds}
        )
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigurationError([f"{option} {score}: {message}"]) from error


def _tsv_column(value: str, option: str, header: bool) -> int | str:
    """A column of a TSV, as params.yaml has it: a number from 0, or a name in the header."""

    if value.isdecimal() and value.isascii():
        return int(value)
    if header:
        return value
    raise ConfigurationError([f"{option} {value}: a column's number from 0, or with --header its name"])
