"""``paraforge merge``: several published corpora as one."""

from pathlib import Path

import typer

from paraforge.base.logs import counted


def merge(
    corpora: list[Path] = typer.Argument(metavar="CORPUS...", help="directories of published corpora"),
    output: Path = typer.Option(..., "--output", "-o", metavar="DIR", help="directory to write"),
    name: str = typer.Option("", help="of the corpus; by default the names of the others"),
    rename: bool = typer.Option(
        False, "--rename", help="call a source that an earlier corpus has, too, SOURCE.2, SOURCE.3, ..."
    ),
    force: bool = typer.Option(False, "--force", help="replace DIR"),
) -> None:
    """Write the pairs of several published corpora as one corpus, with manifest and card.

    Scores and lineage stay as they are: score pairs anew where the corpora were scored otherwise, which is
    said. A pair that an earlier corpus has, too, is counted as rejected (in_earlier_corpus). Groups are found
    over all. What is held out stays held out: a pair that shares a sentence with a test pair joins its split.

    \b
    Examples:
      paraforge merge first/data/corpus second/data/corpus -o data/merged
      paraforge merge news/corpus dialogue/corpus captions/corpus --name "Three domains" -o three
    """
    from paraforge.base.errors import InputError
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.corpus.publication.datasets import open_published
    from paraforge.interface.cli.outputs import MERGED_CORPUS, check_output_directory
    from paraforge.interface.query.merge import merge_corpora

    if len(corpora) < 2:
        raise InputError("one corpus", corpora[0], remedy="Name two or more.")
    check_output_directory(output, force, MERGED_CORPUS)
    with graceful_interrupts():
        merged = merge_corpora([open_published(corpus) for corpus in corpora], output, name, rename)
    said = [counted(merged.manifest.rows, "pair"), f"{merged.repeated:,} in an earlier corpus, too"]
    if merged.moved:
        said.append(f"{merged.moved:,} moved to a split, as they share a sentence with it")
    typer.echo(f"{output}: {'; '.join(said)}", err=True)
