"""``paraforge score``: score pairs of reference and translation from a file."""

from __future__ import annotations

from pathlib import Path

import typer

from paraforge.cli.spelling import DEVICE_HELP

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def score(
    input_path: Path = typer.Argument(metavar="INPUT", help="TSV (plain, gz, bz2, xz, zst) or Parquet"),
    output: Path = typer.Argument(metavar="OUTPUT", help="Parquet file to write"),
    vectors: Path | None = typer.Option(
        None,
        help="word vectors: a file (word2vec, GloVe or paragram format) or a table such as models/paragram; "
        "or a trained model's directory; by default the built-in English scorer",
    ),
    reference: str = typer.Option("", help="reference column: a TSV's number from 0 (default 0) or a name"),
    translation: str = typer.Option("", help="translation column: a TSV's number (default 1) or a name"),
    header: bool = typer.Option(False, "--header", help="the TSV's first line names its columns"),
    identify_language: bool = typer.Option(
        False, "--identify-language", help="add the languages of both sides (needs paraforge[language])"
    ),
    languages: str = typer.Option("", help="codes of the languages to tell apart, e.g. en,cs,de"),
    sentence_transformer: Path | None = typer.Option(
        None, help="add the cosine under the sentence-transformers model in this directory"
    ),
    cross_encoder: Path | None = typer.Option(
        None, help="add what the cross-encoder of sentence-transformers in this directory says"
    ),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    workers: int = typer.Option(0, min=0, help="processes; 0 is one a core"),
    force: bool = typer.Option(False, "--force", help="overwrite OUTPUT"),
) -> None:
    """Score pairs: lengths, paraphrase score, n-gram overlaps, copy rate, signs of bad translations.

    OUTPUT has the columns of a published corpus: for a TSV line, reference, translation and the scores; for a
    Parquet file all its columns and the scores.

    A vector file is converted once; its memory-mapped table is kept in ~/.cache/paraforge/vectors.

    \b
    Examples:
      paraforge score pairs.tsv.gz scored.parquet
      paraforge score pairs.tsv.gz scored.parquet --vectors paragram_300_sl999.txt
      paraforge score pairs.tsv scored.parquet --vectors models/paragram --reference 2 --translation 3
      paraforge score pairs.parquet scored.parquet --vectors glove.txt.gz --reference en --translation mt
    """
    from paraforge.cli.outputs import check_output_file, table
    from paraforge.interrupts import graceful_interrupts
    from paraforge.learning.devices import chosen_device
    from paraforge.loading import load_fixed
    from paraforge.scoring import general
    from paraforge.scoring.score_file import check_input, is_parquet, score_file
    from paraforge.scoring.vector_cache import table_directory
    from paraforge.shards.resources import available_cores

    check_input(input_path)
    check_output_file(output, force, table("a table", "parquet", ["paraphrase_score", "overlap_3"]))
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
    with graceful_interrupts():
        rows = score_file(
            input_path,
            output,
            {
                "vectors": directory,
                "open_model": load_fixed,
                "identify_language": identify_language or bool(languages),
                "languages": [code.strip() for code in languages.split(",")] if languages else None,
                "sentence_transformer_directory": sentence_transformer,
                "cross_encoder_directory": cross_encoder,
                "device": chosen_device(device) if sentence_transformer or cross_encoder else "cpu",
            },
            columns,
            header,
            workers or available_cores(),
        )
    typer.echo(f"{output}: {rows:,} pairs", err=True)


def _tsv_column(value: str, option: str, header: bool) -> int | str:
    """A column of a TSV, as params.yaml has it: a number from 0, or a name in the header."""
    from paraforge.errors import ConfigurationError

    if value.isdecimal() and value.isascii():
        return int(value)
    if header:
        return value
    raise ConfigurationError([f"{option} {value}: a column's number from 0, or with --header its name"])
