"""``paraforge similarity``: how similar the sentences of pairs are."""

from __future__ import annotations

from pathlib import Path

import typer

from paraforge.interface.cli.spelling import DEVICE_HELP


def similarity(
    model: Path = typer.Argument(
        help="directory of a trained model, e.g. models/embeddings/word; of trained decoders also with "
        "@context, @unrolled:3 or @mean:3 behind it"
    ),
    first: Path = typer.Argument(help="TSV of pairs, or the first sentences, one per line"),
    second: Path | None = typer.Argument(None, help="the second sentences, one per line"),
    columns: str = typer.Option("0,1", help="the two columns of the TSV, counted from 0"),
    output: Path | None = typer.Option(None, "--output", "-o", help="write here; standard output if not"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Cosine of both sentences of every pair, a number per line, in order; 0 where one has no token.

    Of trained decoders it is the dot product, or with :cosine behind the representation's name the cosine.

    \b
    Examples:
      paraforge similarity models/embeddings/word pairs.tsv.gz
      paraforge similarity models/embeddings/word references.txt hypotheses.txt -o cosines.txt
      paraforge similarity decoders/bow-gru@unrolled:2 pairs.tsv
    """
    from paraforge.base.files import text_output
    from paraforge.base.interrupts import graceful_interrupts
    from paraforge.embeddings.inference.similarity import cosines_of_files, cosines_of_table
    from paraforge.interface.cli.outputs import check_output_file, text_lines
    from paraforge.interface.cli.settings import column_pair, quiet_pipe
    from paraforge.products.loading import load_fixed

    check_output_file(output, force, text_lines("numbers, one per line", r"-?\d+\.\d{6}", repeated=True))
    pair = column_pair(columns)
    opened = load_fixed(model, device)
    cosines = (
        cosines_of_table(opened, first, pair) if second is None else cosines_of_files(opened, first, second)
    )
    with quiet_pipe(), graceful_interrupts(), text_output(output) as target:
        for block in cosines:
            target.write("".join(f"{cosine:.6f}\n" for cosine in block.tolist()))
