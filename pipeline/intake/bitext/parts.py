"""Reads and cleans one file of a source into parts: shards that later runs reuse while the file is the same.

A part also has the keys for finding duplicates.
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
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paraforge.base.errors import InputError
from paraforge.base.files import sha256_file
from paraforge.base.interrupts import check_interrupt
from paraforge.base.shards.lineage import text_keys
from paraforge.base.shards.pool import in_window
from paraforge.base.shards.scheduler import report_rows
from paraforge.base.shards.schema import COLUMNS, tables_of
from paraforge.base.shards.store import ShardDirectory, ShardRecord, shard_name, write_index, write_shard
from paraforge.base.text.lines import Reading
from paraforge.base.text.normalisation import folded
from paraforge.intake.bitext.block import Block
from paraforge.intake.bitext.cleaning import Notices, clean, reason_names
from paraforge.intake.bitext.parameters import Cleaning
from paraforge.intake.bitext.sources import SourceFile, read_file

logger = logging.getLogger(__name__)

PART_ROWS = 50_000
TEXTS: dict[str, tuple[str, ...]] = {
    "bitext": ("source_text", "reference"),
    "references": ("reference",),
    "paraphrases": ("reference", "translation"),
}
PAIR_KEY = ("pair_high", "pair_low")
SOURCE_KEY = ("source_high", "source_low")
# Parts are kept, so they are compressed more: a tenth smaller for a twentieth more time.
_LEVEL = 3


@dataclass(frozen=True)
class FileReport:
    """The result of reading one file.

    rows: rows read, rejected ones included. last_line: line number of the last row.
    rejected: rejected rows by reason, except duplicates and contaminated rows.
    changes: rows or lines repaired, by what was repaired.
    noticed: rows with something that is not repaired, by kind. examples: a text of each kind.
    """

    rows: int
    last_line: int
    rejected: dict[str, int]
    changes: dict[str, int]
    noticed: dict[str, int]
    examples: dict[str, str]


def part_schema(kind: str) -> pa.Schema:
    """Return the columns of a part."""
    names = ["line", *TEXTS[kind], *(["given_score"] if kind == "paraphrases" else []), "rejected"]
    keys = PAIR_KEY + (() if kind == "paraphrases" else SOURCE_KEY)
    return pa.schema([*(COLUMNS[name] for name in names), *(pa.field(name, pa.uint64()) for name in keys)])


def read_parts(
    file: SourceFile,
    cleaning: Cleaning,
    kind: str,
    digests: dict[str, str],
    directory: Path,
    threads: int = 1,
) -> FileReport:
    """Read and clean a file into ``directory`` with keys for duplicates; reuses what an earlier run finished
    there.

    cleaning: how to clean it. kind: ``ingest.kind``.
    digests: SHA-256 of its files when the run began.
    directory: named after everything that the result depends on.
    threads: number of threads that clean and write; they change no byte.

    Raises:
        InputError: see :func:`paraforge.intake.bitext.sources.read_file`; a file that changes while it is
        read.
        Interrupted: SIGTERM or Ctrl-C.
    """
    if (report := _finished(directory)) is not None:
        return report
    before = {name: _state(path) for name, path in file.paths.items()}
    reading = Reading()
    changes: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    notices = Notices()
    paths = {name: file.path_of(name) for name in TEXTS[kind]}
    schema = part_schema(kind)
    directory.mkdir(parents=True, exist_ok=True)
    rows = last_line = 0

    def cleaned(block: Block | InputError) -> tuple[pa.Table, Counter[str], Notices]:
        if isinstance(block, InputError):
            raise block
        found: Counter[str] = Counter()
        block.texts = {name: block.texts[name] for name in TEXTS[kind]}
        seen = Notices()
        block = clean(block, cleaning, paths, found, seen)
        return pa.table({**_columns(block, kind), **_keys(block, kind)}, schema), found, seen

    def counted(tables: Iterable[tuple[pa.Table, Counter[str], Notices]]) -> Iterator[pa.Table]:
        nonlocal rows, last_line
        for table, found, seen in tables:
            check_interrupt()
            rejected.update(table.column("rejected").drop_null().to_pylist())
            changes.update(found)
            notices.update(seen)
            rows += table.num_rows
            last_line = table.column("line")[-1].as_py()
            report_rows(table.num_rows)
            yield table

    def write(part: tuple[int, pa.Table]) -> ShardRecord:
        number, table = part
        return write_shard(table.combine_chunks(), directory / shard_name(number), _LEVEL)

    def check_unchanged() -> None:
        # The parts are named by the hash of the file's content at the start.
        for name, path in file.paths.items():
            if _state(path) != before[name] and sha256_file(path) != digests[name]:
                raise InputError(
                    "the file changed while it was read", path, remedy="Run the same command again."
                )

    try:
        # One pool for both, with the given number of threads.
        with ThreadPoolExecutor(threads, "clean") as pool:
            blocks = _blocks_or_error(read_file(file, cleaning, reading))
            tables = in_window(pool, cleaned, blocks, 2 * threads)
            written = list(in_window(pool, write, enumerate(tables_of(counted(tables), PART_ROWS)), threads))
    except InputError:
        check_unchanged()  # the error may come from a file that was being changed
        raise
    if rows == 0:
        raise InputError("the file has no rows", file.main_path)
    check_unchanged()
    changes.update(reading.changes)
    refused, changed, noticed = (dict(sorted((+one).items())) for one in (rejected, changes, notices.rows))
    examples = dict(sorted(notices.examples.items()))
    report = FileReport(rows, last_line, refused, changed, noticed, examples)
    write_index(directory, written, {"report": asdict(report)})
    return report


def _blocks_or_error(blocks: Iterable[Block]) -> Iterator[Block | InputError]:
    """Yield the blocks with rows; an error is yielded in its place, after errors of the rows before it."""
    try:
        yield from filter(len, blocks)
    except InputError as error:
        yield error


def _finished(directory: Path) -> FileReport | None:
    """Return the report of parts that an earlier run finished, or None. The index is written last."""
    try:
        parts = ShardDirectory(directory)
        rows = [pq.read_metadata(path).num_rows for path in parts.paths]
        return FileReport(**parts.description["report"]) if rows == parts.rows else None
    except (InputError, KeyError, TypeError, OSError, pa.ArrowInvalid):
        return None


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _columns(block: Block, kind: str) -> dict[str, Any]:
    columns: dict[str, Any] = {"line": block.lines, **block.texts, "rejected": reason_names(block.codes)}
    if kind == "paraphrases":
        scores = block.scores
        columns["given_score"] = pa.nulls(len(block), pa.float32()) if scores is None else scores
    return columns


def _keys(block: Block, kind: str) -> dict[str, NDArray[np.uint64]]:
    texts = list(block.texts.values())
    keyed = [(PAIR_KEY, text_keys(*map(folded, texts)))]
    if kind != "paraphrases":
        keyed.append((SOURCE_KEY, text_keys(texts[0])))
    return {
        name: np.ascontiguousarray(keys[:, half]) for names, keys in keyed for half, name in enumerate(names)
    }
