"""Reads and cleans one file of a source into parts: shards that later runs reuse while the file is the same.

The keys of the rows are kept next to them until the shards are published, and computed again when they are
needed: they are a third of the bytes, and much quicker to have than the parts.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import remove_directory, sha256_file
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.pool import in_window
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.schema import COLUMNS, tables_of
from paraforge.base.shards.step import check_bytes
from paraforge.base.shards.store import (
    ShardDirectory,
    ShardRecord,
    ShardView,
    read_parquet,
    shard_name,
    write_index,
    write_shard,
)
from paraforge.base.text.lines import Reading
from paraforge.intake.bitext.block import Block
from paraforge.intake.bitext.cleaning import clean, reason_names
from paraforge.intake.bitext.parameters import Cleaning
from paraforge.intake.bitext.sources import SourceFile, read_file

logger = logging.getLogger(__name__)

PART_ROWS = 50_000
TEXTS = {"bitext": ("source_text", "reference"), "paraphrases": ("reference", "translation")}
PAIR_KEY = ("pair_high", "pair_low")
SOURCE_KEY = ("source_high", "source_low")
_KEYS = "keys"
# Parts stay, so they are worth a smaller size: a tenth for a twentieth of the time.
_LEVEL = 3


@dataclass(frozen=True)
class FileReport:
    """What reading one file gave.

    rows: rows read, rejected ones included. last_line: line number of the last row.
    rejected: rejected rows by reason, duplicates and contaminated rows not among them.
    changes: rows or lines repaired, by what was repaired.
    """

    rows: int
    last_line: int
    rejected: dict[str, int]
    changes: dict[str, int]


def part_schema(kind: str) -> pa.Schema:
    """Columns of a part."""
    names = ["line", *TEXTS[kind], *(["given_score"] if kind == "paraphrases" else []), "rejected"]
    return pa.schema([COLUMNS[name] for name in names])


def key_schema(kind: str) -> pa.Schema:
    """Columns of the keys of a part."""
    names = PAIR_KEY + (SOURCE_KEY if kind == "bitext" else ())
    return pa.schema([pa.field(name, pa.uint64()) for name in names])


def read_parts(
    file: SourceFile,
    cleaning: Cleaning,
    kind: str,
    digests: dict[str, str],
    directory: Path,
    threads: int = 1,
) -> FileReport:
    """Read, clean and key a file into ``directory``; reuses what an earlier run finished there.

    cleaning: how to clean it. kind: ``bitext`` or ``paraphrases``.
    digests: SHA-256 of its files when the run began.
    directory: named after everything that the result depends on.
    threads: that clean and write what this one reads; they change no byte.

    Raises:
        InputError: see :func:`paraforge.intake.bitext.sources.read_file`; a file that changes while it is
        read.
        Interrupted: SIGTERM or Ctrl-C.
    """
    report = finished_parts(directory)
    if report is not None:
        if _unharmed(directory / _KEYS) is None:
            drop_keys(directory)
        return report
    before = {name: _state(path) for name, path in file.paths.items()}
    reading = Reading()
    changes: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    paths = {name: file.path_of(name) for name in TEXTS[kind]}
    schemas = {directory: part_schema(kind), directory / _KEYS: key_schema(kind)}
    for place in schemas:
        place.mkdir(parents=True, exist_ok=True)
    rows = last_line = 0

    def cleaned(block: Block | InputError) -> tuple[pa.Table, Counter[str]]:
        if isinstance(block, InputError):
            raise block
        found: Counter[str] = Counter()
        block.texts = {name: block.texts[name] for name in TEXTS[kind]}
        block = clean(block, cleaning, paths, found)
        columns = {**_columns(block, kind), **_keys(block, kind)}
        return pa.table(columns, pa.schema([field for schema in schemas.values() for field in schema])), found

    def counted(tables: Iterable[tuple[pa.Table, Counter[str]]]) -> Iterator[pa.Table]:
        nonlocal rows, last_line
        for table, found in tables:
            check_interrupt()
            rejected.update(table.column("rejected").drop_null().to_pylist())
            changes.update(found)
            rows += table.num_rows
            last_line = table.column("line")[-1].as_py()
            report_rows(table.num_rows)
            yield table

    def write(part: tuple[int, pa.Table]) -> list[ShardRecord]:
        number, table = part
        return [
            write_shard(table.select(schema.names).combine_chunks(), place / shard_name(number), _LEVEL)
            for place, schema in schemas.items()
        ]

    # One pool for both: as many threads as were given.
    with ThreadPoolExecutor(threads, "clean") as pool:
        tables = in_window(pool, cleaned, _blocks_or_error(read_file(file, cleaning, reading)), 2 * threads)
        written = list(in_window(pool, write, enumerate(tables_of(counted(tables), PART_ROWS)), threads))
    if rows == 0:
        raise InputError("the file has no rows", file.main_path)
    for name, path in file.paths.items():
        # The parts are kept under the hash of what the file held at the start.
        if _state(path) != before[name] and sha256_file(path) != digests[name]:
            raise InputError("the file changed while it was read", path, remedy="Run the same command again.")
    changes.update(reading.changes)
    report = FileReport(rows, last_line, dict(sorted(rejected.items())), dict(sorted(changes.items())))
    parts, keys = (list(records) for records in zip(*written, strict=True))
    write_index(directory / _KEYS, keys, {})
    write_index(directory, parts, {"report": asdict(report)})
    return report


def _blocks_or_error(blocks: Iterable[Block]) -> Iterator[Block | InputError]:
    """Blocks with rows; an error comes in its place, after what is wrong with the rows before it."""
    try:
        yield from filter(len, blocks)
    except InputError as error:
        yield error


def finished_parts(directory: Path) -> FileReport | None:
    """The report of parts that are all there and undamaged, or None."""
    parts = _unharmed(directory)
    try:
        report = None if parts is None else FileReport(**parts.description["report"])
    except (KeyError, TypeError):
        return None
    return report if parts is not None and report is not None and report.rows == parts.total_rows else None


def _unharmed(directory: Path) -> ShardDirectory | None:
    """Shards that are all there, with the bytes that their index names."""
    try:
        check_bytes(view := ShardView(directory))
    except InputError:
        return None
    return view.directories[0]


def keys_of(part: Path, columns: tuple[str, str], texts: tuple[str, ...]) -> NDArray[np.uint64]:
    """Keys of the rows of a part, n x 2: as they are kept, or of these text columns."""
    kept = part.parent / _KEYS / part.name
    if kept.is_file():
        table = read_parquet(kept, columns)
        return np.stack([table.column(name).to_numpy() for name in columns], axis=1)
    table = read_parquet(part, texts)
    return text_keys(*(table.column(name) for name in texts))


def drop_keys(directory: Path) -> None:
    """Remove the keys of a file's parts."""
    remove_directory(directory / _KEYS)


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _columns(block: Block, kind: str) -> dict[str, Any]:
    columns: dict[str, Any] = {"line": block.lines, **block.texts, "rejected": reason_names(block.codes)}
    if kind != "bitext":
        scores = block.scores
        columns["given_score"] = pa.nulls(len(block), pa.float32()) if scores is None else scores
    return columns


def _keys(block: Block, kind: str) -> dict[str, NDArray[np.uint64]]:
    first, second = block.texts.values()
    keyed = [(PAIR_KEY, text_keys(first, second))]
    if kind == "bitext":
        keyed.append((SOURCE_KEY, text_keys(first)))
    return {
        name: np.ascontiguousarray(keys[:, half]) for names, keys in keyed for half, name in enumerate(names)
    }
