"""``paraforge similarity``: how similar the sentences of pairs are."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import typer

from paraforge.cli.spelling import DEVICE_HELP

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def similarity(
    model: Path = typer.Argument(
        help="directory of a trained model, e.g. models/embeddings/word; of trained decoders also with "
        "@context, @unrolled:3 or @mean:3 behind it"
    ),
    first: Path = typer.Argument(help="TSV of pairs, or the first sentences, one a line"),
    second: Path | None = typer.Argument(None, help="the second sentences, one a line"),
    columns: str = typer.Option("0,1", help="the two columns of the TSV, counted from 0"),
    output: Path | None = typer.Option(None, "--output", "-o", help="write here; standard output if not"),
    device: str = typer.Option("auto", help=DEVICE_HELP),
    force: bool = typer.Option(False, "--force", help="replace OUTPUT"),
) -> None:
    """Cosine of both sentences of every pair, a number a line, in order; 0 where one has no token.

    Of trained decoders it is the dot product, or with :cosine behind the representation's name the cosine.

    \b
    Examples:
      paraforge similarity models/embeddings/word pairs.tsv.gz
      paraforge similarity models/embeddings/word references.txt hypotheses.txt -o cosines.txt
      paraforge similarity models/decoders/bow-gru@unrolled:2 pairs.tsv
    """
    from paraforge.cli.outputs import check_output_file, text_lines
    from paraforge.errors import ConfigurationError
    from paraforge.files import atomic_path
    from paraforge.inference.similarity import cosines_of_files, cosines_of_table
    from paraforge.interrupts import graceful_interrupts
    from paraforge.learning.devices import chosen_device
    from paraforge.loading import load_fixed

    check_output_file(output, force, text_lines("numbers, one a line", r"-?\d+\.\d{6}", repeated=True))
    try:
        left, right = (int(number) for number in columns.split(","))
    except ValueError:
        raise ConfigurationError([f"--columns {columns}: two columns, such as 0,1"]) from None
    opened = load_fixed(model, chosen_device(device))
    cosines = (
        cosines_of_table(opened, first, (left, right))
        if second is None
        else cosines_of_files(opened, first, second)
    )
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(graceful_interrupts())
            target = sys.stdout
            if output is not None:
                target = stack.enter_context(
                    stack.enter_context(atomic_path(output)).open("w", encoding="utf-8")
                )
            for block in cosines:
                target.write("".join(f"{cosine:.6f}\n" for cosine in block.tolist()))
            target.flush()
    except BrokenPipeError:
        # The reader of the pipe has closed it ('| head'): nothing more may be flushed into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(128 + signal.SIGPIPE) from None
