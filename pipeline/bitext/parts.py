"""Reads and cleans one file of a source into parts: shards with the keys of their rows."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paraforge.bitext.block import Block
from paraforge.bitext.cleaning import clean, reason_names
from paraforge.bitext.parameters import Cleaning
from paraforge.bitext.sources import SourceFile, read_file
from paraforge.errors import InputError
from paraforge.files import sha256_file
from paraforge.interrupts import check_interrupt
from paraforge.shards.keys import text_keys
from paraforge.shards.scheduler import report_rows
from paraforge.shards.schema import COLUMNS
from paraforge.shards.store import ShardDirectory, ShardWriter
from paraforge.text.lines import Reading

logger = logging.getLogger(__name__)

PART_ROWS = 50_000
TEXTS = {"bitext": ("source_text", "reference"), "paraphrases": ("reference", "translation")}
PAIR_KEY = ("pair_high", "pair_low")
SOURCE_KEY = ("source_high", "source_low")


@dataclass(frozen=True)
class FileReport:
    """What reading one file gave.

    rows: rows read, refused ones included. last_line: line number of the last row.
    rejected: refused rows by reason, duplicates and contaminated rows not among them.
    changes: rows or lines mended, by what was mended.
    """

    rows: int
    last_line: int
    rejected: dict[str, int]
    changes: dict[str, int]


def part_schema(kind: str) -> pa.Schema:
    """Columns of a part: those of the row itself, then the keys."""
    names = ["line", *TEXTS[kind], *(["given_score"] if kind == "paraphrases" else []), "rejected"]
    keys = PAIR_KEY + (SOURCE_KEY if kind == "bitext" else ())
    return pa.schema([COLUMNS[name] for name in names] + [pa.field(name, pa.uint64()) for name in keys])


def read_parts(
    file: SourceFile, cleaning: Cleaning, kind: str, digests: dict[str, str], directory: Path
) -> FileReport:
    """Read, clean and key a file into ``directory``; takes over what an earlier run finished there.

    cleaning: how to clean it. kind: ``bitext`` or ``paraphrases``.
    digests: SHA-256 of its files when the run began.
    directory: named after everything that the result depends on.

    Raises:
        InputError: see :func:`paraforge.bitext.sources.read_file`; a file that changes while it is read.
        Interrupted: SIGTERM or Ctrl-C.
    """
    report = finished_parts(directory)
    if report is not None:
        return report
    before = {name: _state(path) for name, path in file.paths.items()}
    reading = Reading()
    rejected: Counter[str] = Counter()
    writer = ShardWriter(directory, part_schema(kind), PART_ROWS)
    paths = {name: file.path_of(name) for name in TEXTS[kind]}
    rows = last_line = 0
    for block in read_file(file, cleaning, reading):
        check_interrupt()
        if not len(block):
            continue
        block.texts = {name: block.texts[name] for name in TEXTS[kind]}
        cleaned = clean(block, cleaning, paths, reading.changes)
        table = _table(cleaned, kind)
        rejected.update(_count(table.column("rejected")))
        writer.write(table)
        rows += len(block)
        last_line = int(block.lines[-1])
        report_rows(len(block))
    if rows == 0:
        raise InputError("the file has no rows", file.main_path)
    for name, path in file.paths.items():
        # The parts are kept under the hash of what the file held at the start.
        if _state(path) != before[name] and sha256_file(path) != digests[name]:
            raise InputError("the file changed while it was read", path, remedy="Run the same command again.")
    changes = dict(sorted(reading.changes.items()))
    report = FileReport(rows, last_line, dict(sorted(rejected.items())), changes)
    writer.close({"report": asdict(report)})
    return report


def finished_parts(directory: Path) -> FileReport | None:
    """The report of parts that are all there and undamaged, or None."""
    try:
        parts = ShardDirectory(directory)
        for record, path in zip(parts.records, parts.paths, strict=True):
            if sha256_file(path) != record.sha256:
                return None
        report = FileReport(**parts.description["report"])
    except (InputError, OSError, KeyError, TypeError):
        return None
    return report if report.rows == parts.total_rows else None


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _count(reasons: pa.ChunkedArray) -> dict[str, int]:
    counted = reasons.drop_null().value_counts()
    return {str(item["values"]): int(item["counts"]) for item in counted.to_pylist()}


def _table(block: Block, kind: str) -> pa.Table:
    columns: dict[str, Any] = {"line": block.lines, **block.texts, "rejected": reason_names(block.codes)}
    first, second = block.texts.values()
    pair = text_keys(first, second)
    columns |= {name: np.ascontiguousarray(pair[:, half]) for half, name in enumerate(PAIR_KEY)}
    if kind == "bitext":
        source = text_keys(first)
        columns |= {name: np.ascontiguousarray(source[:, half]) for half, name in enumerate(SOURCE_KEY)}
    else:
        scores = block.scores
        columns["given_score"] = pa.nulls(len(block), pa.float32()) if scores is None else scores
    return pa.table(columns)
