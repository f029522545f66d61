"""Writes pairs of sentences as Parquet for `paraforge lexicon extract`.

python -m experiments.lexicon captions,bible pairs.parquet
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from benchmarks.command_line import start
from experiments.pairs import FILES, paraphrases
from experiments.pool import corpus_pairs
from paraforge.base.files import atomic_path
from paraforge.base.shards.store import parquet_writer
from paraforge.base.text.pair_blocks import PairBlock


def main(
    sources: Annotated[str, typer.Argument(help="of experiments.pairs, separated by commas, or corpus")],
    output: Path,
    corpus: Annotated[list[Path] | None, typer.Option(help="row-aligned shard directories")] = None,
) -> None:
    """Write the pairs of the sources."""
    names = sources.split(",")
    if unknown := sorted({*names} - {*FILES, *(["corpus"] if corpus else [])}):
        raise typer.BadParameter(
            f"no source {unknown[0]}: there are {', '.join(FILES)}, and corpus with --corpus"
        )

    def blocks() -> Iterator[PairBlock]:
        for source in names:
            if source == "corpus":
                yield from (block for block, _ in corpus_pairs(corpus or []))
            else:
                yield from paraphrases(source)

    schema = pa.schema([(name, pa.string()) for name in ("reference", "translation")])
    with atomic_path(output) as path, parquet_writer(path, schema) as writer:
        for block in blocks():
            writer.write_table(pa.table([block.left, block.right], names=schema.names).cast(schema))


if __name__ == "__main__":
    start(main)
