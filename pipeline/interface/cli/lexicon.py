"""``paraforge lexicon``: extract a paraphrase lexicon and look words up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from paraforge.base.logs import counted
from paraforge.base.shards.resources import Resources
from paraforge.interface.cli.settings import (
    FORCE,
    SETTINGS,
    WORK,
    WORKERS,
    check_output,
    group,
    with_settings,
)
from paraforge.products.lexicon.parameters import LexiconParameters

if TYPE_CHECKING:
    import pyarrow as pa

lexicon = group(
    "Extract a paraphrase lexicon (ParaNMT-50M, appendix A.1), and look up words. See lexicon.md."
)

LEXICON = Path("data/lexicon")


@lexicon.command()
def extract(
    input_path: Path = typer.Argument(metavar="INPUT", help="corpus directory or Parquet file"),
    output: Path = typer.Argument(metavar="OUTPUT", help="directory to write"),
    aligned: list[Path] = typer.Option(
        [], help="directory with more columns for the same rows, e.g. data/scored for data/translated"
    ),
    settings: list[str] = SETTINGS,
    workers: int = WORKERS,
    work: Path = WORK,
    force: bool = FORCE,
) -> None:
    """Extract a lexicon from paraphrase pairs.

    --set takes the keys of the section lexicon. filters.minimum_score=null counts all pairs.

    \b
    Examples:
      paraforge lexicon extract data/corpus my-lexicon
      paraforge lexicon extract data/translated my-lexicon --aligned data/scored
      paraforge lexicon extract pairs.parquet lexicon --set filters.minimum_score=null --set minimum_pairs=2
    """
    from paraforge.products.lexicon.extraction import extract_lexicon

    check_output(output, force, directory=True)
    parameters = with_settings(LexiconParameters, settings)
    inputs = [input_path, *aligned]
    report = extract_lexicon(inputs, output, parameters, Resources(workers=workers, work=work))
    left_out = ", ".join(f"{reason} {count:,}" for reason, count in report.dropped.items() if count)
    typer.echo(
        f"{output}: {report.entries:,} entries for {report.words_with_paraphrases:,} words from "
        f"{report.pairs:,} of {counted(report.rows, 'pair')}"
        + (f" (left out: {left_out})" if left_out else "")
    )


@lexicon.command()
def lookup(
    words: list[str] = typer.Argument(metavar="WORD", help="words to look up"),
    lexicon: Path = typer.Option(LEXICON, "--lexicon", "-l", help="directory of the lexicon"),
    count: int = typer.Option(20, "--count", "-n", min=1, help="maximum number of paraphrases per word"),
    minimum_pairs: int = typer.Option(10, help="hide entries with fewer pairs"),
    minimum_pmi: float = typer.Option(1.5, help="hide entries below this adjusted PMI"),
) -> None:
    """Show the paraphrases of words, best first. Exits with 1 if none of the words is in the lexicon.

    \b
    Examples:
      paraforge lexicon lookup journalist garden
      paraforge lexicon lookup garden -l my-lexicon --minimum-pairs 20
    """
    from paraforge.products.lexicon.lookup import Lexicon

    opened = Lexicon(lexicon)
    matching = opened.lookup(words, count, minimum_pairs, minimum_pmi)
    unknown = 0
    for word, entries in matching.items():
        if entries.num_rows:
            typer.echo(_table(word, entries))
        else:
            sentences = opened.count_of(word)
            unknown += not sentences
            reason = _why_missing(opened, word, sentences, minimum_pairs, minimum_pmi)
            typer.echo(f"{word}: {reason}", err=True)
    if unknown == len(matching):
        raise typer.Exit(1)


def _why_missing(lexicon: Any, word: str, sentences: int, minimum_pairs: int, minimum_pmi: float) -> str:
    from paraforge.base.text.tokens import tokenize

    if not sentences:
        if len(tokens := tokenize(word)) > 1:
            return f"not in the lexicon, whose entries are single tokens; look up {', '.join(tokens)}"
        least = lexicon.manifest["parameters"]["minimum_pairs"]
        return f"not in the lexicon: it occurs in fewer than {least} sentences"
    return (
        f"no paraphrase: it occurs in {counted(sentences, 'sentence')}, but with no word in at least "
        f"{counted(minimum_pairs, 'pair')} with an adjusted PMI of at least {minimum_pmi:g}; lower "
        "--minimum-pairs or --minimum-pmi"
    )


def _table(word: str, entries: pa.Table) -> str:
    from paraforge.base.markdown import text_table
    from paraforge.interface.query.pairs import format_fixed

    scores = ("adjusted_pmi", "cross_pmi", "ordinary_pmi")
    header = ["rank", "paraphrase", "adjusted", "cross", "ordinary", "pairs"]
    rows = [
        [
            str(row["rank"]),
            row["paraphrase"],
            *("-" if row[name] is None else format_fixed(row[name], 2) for name in scores),
            f"{row['pairs']:,}",
        ]
        for row in entries.to_pylist()
    ]
    title = f"{word}  (in {counted(entries['word_count'][0].as_py(), 'sentence')})"
    return "\n".join([title, *(f"  {line}" for line in text_table(header, rows, left=2))])
