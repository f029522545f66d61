"""Reads the bitexts that benchmarks and tests translate."""

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraforge.base.shards.store import ROWS_PER_SHARD, ShardWriter
from paraforge.corpus.columns import schema_of


def read_bitext(paths: Iterable[Path], limit: int) -> tuple[list[str], list[str]]:
    """Read the English and the foreign side of TSV files, their last two columns."""
    rows: list[list[str]] = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            rows += [line.rstrip("\n").split("\t") for line in file]
    rows = rows[:limit] if limit else rows
    return [row[-2] for row in rows], [row[-1] for row in rows]


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
    writer.write(pa.table([pa.array(columns[one.name], one.type) for one in schema], schema=schema))
    writer.close({"step": "ingest"})
    return path
