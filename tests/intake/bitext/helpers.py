"""Small files in every format and compression, blocks as lists of rows, and a checked run of ingest."""

import bz2
import gzip
import lzma
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import zstandard

from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.report import IngestReport
from paraforge.intake.bitext.source import NAMES, ONLY, Block, ColumnSource

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, compressed as its name says."""
    data = content.encode() if isinstance(content, str) else content
    compress = COMPRESSORS.get(path.suffix, bytes)
    path.write_bytes(compress(data))
    return path


def rows_of(blocks: Iterable[Block]) -> list[tuple[object, ...]]:
    """(line, text, text, reason or None) of each row."""
    rows: list[tuple[object, ...]] = []
    for block in blocks:
        texts = [array.to_pylist() for array in block.texts.values()]
        reasons = [NAMES[code - 1] if code else None for code in block.codes.tolist()]
        rows += zip(block.lines.tolist(), *texts, reasons, strict=True)
    return rows


Row = dict[str, Any]


def tsv(path: Path | str | list[str], name: str = "a", **options: Any) -> dict[str, Any]:
    """A source of `ingest`: the reference, then the other side."""
    columns = {"source_text": 1, "reference": 0}
    given = path if isinstance(path, list) else str(path)
    return {"name": name, "format": "tsv", "path": given, "columns": columns, **options}


def run(
    base: Path, *sources: dict[str, Any], workers: int = 1, in_process_rows: int = 20_000, **options: Any
) -> tuple[IngestReport, list[Row]]:
    """Ingest below ``base``, check that all counts agree, and give the report and all rows."""
    parameters = IngestParameters.model_validate({"sources": list(sources), "rows_per_shard": 100, **options})
    resources = Resources(work=base / "work", workers=workers, in_process_rows=in_process_rows)
    report = ingest(parameters, base / "ingested", resources)
    rows = [row for table in ShardDirectory(base / "ingested").tables() for row in table.to_pylist()]
    assert report.rows == len(rows) == report.kept + sum(report.rejected.values())
    assert Counter(row["rejected"] for row in rows if row["rejected"]) == report.rejected
    for name, source in report.sources.items():
        assert source.rows == source.kept + sum(source.rejected.values())
        assert source.rows == sum(row["source"] == name for row in rows)
    return report, rows


def blocks_of(
    kind: type[ColumnSource], path: Path, columns: Mapping[str, str], reading: Reading | None = None
) -> Iterator[Block]:
    """The blocks of a file, read as a source of this kind with these columns."""
    (format,) = get_args(kind.model_fields["format"].annotation)
    source = kind(format=format, name="x", path=str(path), columns=dict(columns))
    return source.read({ONLY: path}, reading or Reading())
