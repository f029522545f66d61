"""Reads the bitexts that benchmarks and tests translate."""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.errors import InputError
from paraforge.base.shards.store import ROWS_PER_SHARD, ShardWriter
from paraforge.base.text.lines import numbered_lines
from paraforge.corpus.columns import schema_of


def read_bitext(paths: Iterable[Path], limit: int) -> tuple[list[str], list[str]]:
    """Read the English and the foreign side of TSV files, their last two columns; a limit of 0 is all."""
    sides: tuple[list[str], list[str]] = [], []
    for path in paths:
        for number, line in islice(numbered_lines(path), limit - len(sides[0]) if limit else None):
            fields = line.split("\t")
            if len(fields) < 2:
                raise InputError("English and foreign text are expected, separated by a tab", path, number)
            sides[0].append(fields[-2])
            sides[1].append(fields[-1])
    return sides


def write_ingested(
    path: Path,
    sources: Sequence[str],
    references: Sequence[str] = (),
    rejected: Sequence[str | None] = (),
    rows_per_shard: int = ROWS_PER_SHARD,
    **more: Sequence[Any],
) -> Path:
    """Write shards in the form of the stage ingest, with empty references and without reasons."""
    first: dict[str, int] = {}
    reasons = rejected or [None] * len(sources)
    columns = {
        "source": ["test"] * len(sources),
        "line": range(1, len(sources) + 1),
        "source_text": sources,
        "reference": references or [""] * len(sources),
        "rejected": reasons,
        "first_row": [
            None if reason else first.setdefault(text, row)
            for row, (text, reason) in enumerate(zip(sources, reasons, strict=True))
        ],
        **more,
    }
    schema = schema_of(columns)
    writer = ShardWriter(path, schema, rows_per_shard)
    writer.write(pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema))
    writer.close({"step": "ingest"})
    return path
