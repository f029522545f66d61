"""Directories of Parquet shards with their index ``_shards.json``: reads one (:class:`ShardDirectory`), reads
several whose rows belong together (:class:`ShardView`), and writes one (:class:`ShardWriter`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paraforge.base.errors import IncompleteError, InputError, check_format, describing
from paraforge.base.files import (
    atomic_path,
    hash_json,
    make_directory,
    plain_name,
    read_json,
    sha256_file,
    write_json,
)

ROWS_PER_SHARD = 50_000
# Compression level: files that are written once and read soon need not be smaller.
_LEVEL = 1
# Readers of a Parquet directory skip names that begin with an underscore.
INDEX_NAME = "_shards.json"
INDEX_FORMAT = 1
# Entries of the index: subdirectories with more columns of the same rows, and files beside the shards.
_MORE_COLUMNS = "more_columns"
_MORE_FILES = "files"
# Text rarely repeats within a shard, so a dictionary would cost time and save nothing. These columns do
# repeat.
DICTIONARY_COLUMNS = ("source", "pivot", "rejected", "failed", "reference_language", "translation_language")


@dataclass(frozen=True)
class ShardRecord:
    """An entry of ``_shards.json``: file name, rows and SHA-256 of the file."""

    file: str
    rows: int
    sha256: str


def shard_name(index: int, stem: str = "shard") -> str:
    """Return the file name of shard ``index``, e.g. ``shard-00007.parquet``."""
    return f"{stem}-{index:05d}.parquet"


def write_parquet(table: pa.Table, path: Path, level: int = _LEVEL, **options: Any) -> None:
    """Write ``table`` as all Parquet files of the project are written: with zstd, page checksums and
    statistics. The bytes depend only on the table and the pyarrow version. A kill leaves half a file; use
    :func:`write_shard` for a final name.

    options: further options of pyarrow's ``write_table``.
    """
    pq.write_table(
        table, path, row_group_size=ROWS_PER_SHARD, **_parquet_options(table.column_names, level), **options
    )


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of one such file, row group by row group. A kill leaves half a file."""
    return pq.ParquetWriter(path, schema, **_parquet_options(schema.names))


def _parquet_options(names: Sequence[str], level: int = _LEVEL) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "compression_level": level,
        "use_dictionary": [name for name in DICTIONARY_COLUMNS if name in names],
        "write_statistics": True,
        "write_page_checksum": True,
        "version": "2.6",
        "store_schema": True,
    }


def write_shard(table: pa.Table, path: Path, level: int = _LEVEL, **options: Any) -> ShardRecord:
    """Write one shard as :func:`write_parquet` does, complete or not at all, and return its record."""
    with atomic_path(path) as temporary:
        write_parquet(table, temporary, level=level, **options)
        digest = sha256_file(temporary)
    return ShardRecord(path.name, table.num_rows, digest)


@contextmanager
def open_parquet(path: Path, remedy: str | None = None) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file to read parts of it, checking page checksums. Raises InputError with the remedy if
    it is missing or cannot be read, when opened or later."""
    try:
        try:
            opened = pq.ParquetFile(path, page_checksum_verification=True)
            opened.schema_arrow  # noqa: B018  names are read now
        except UnicodeDecodeError as error:  # names in a damaged footer
            raise InputError(f"cannot be read as Parquet: {error}", path, remedy=remedy) from error
        with opened as file:
            yield file
    except FileNotFoundError as error:
        raise InputError("no such file", path, remedy=remedy) from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot be read as Parquet: {error}", path, remedy=remedy) from error


def row_groups(
    file: pq.ParquetFile, rows_per_group: int = ROWS_PER_SHARD
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Divide a file into pieces of at least ``rows_per_group`` rows (the last may be smaller). Yields each
    piece's row group numbers, and its rows."""
    groups: tuple[int, ...] = ()
    rows = 0
    for group in range(file.metadata.num_row_groups):
        groups += (group,)
        rows += file.metadata.row_group(group).num_rows
        if rows >= rows_per_group or group == file.metadata.num_row_groups - 1:
            yield groups, rows
            groups, rows = (), 0


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file of the project, checking page checksums. Raises InputError if the file is missing,
    not Parquet, damaged, or lacks a column."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        missing = [name for name in columns or () if name not in names]
        if missing:
            raise InputError(f"no column {', '.join(missing)}; it has {', '.join(names)}", path)
        return file.read(columns=columns, use_threads=False)


def read_schema(path: Path) -> pa.Schema:
    """Return the schema of a Parquet file of the project. Raises InputError if the file cannot be read."""
    with open_parquet(path) as file:
        return file.schema_arrow


def write_index(directory: Path, records: Sequence[ShardRecord], description: dict[str, Any]) -> None:
    """Write ``_shards.json``: the rows and SHA-256 of each shard, and as further entries ``description``,
    what made them."""
    write_json(
        directory / INDEX_NAME,
        {
            "format": INDEX_FORMAT,
            **description,
            "rows": sum(record.rows for record in records),
            "shards": [{"file": r.file, "rows": r.rows, "sha256": r.sha256} for r in records],
        },
    )


def aligned_with(names: Iterable[str]) -> dict[str, Any]:
    """Return a description's entry for subdirectories with more columns of the same rows, which
    :meth:`ShardDirectory.with_aligned` opens; no entry without names."""
    return {_MORE_COLUMNS: listed} if (listed := list(names)) else {}


def accompanied_by(names: Iterable[str]) -> dict[str, Any]:
    """Return a description's entry for files beside the shards, so that :func:`file_beside` notices if one is
    missing; no entry without names."""
    return {_MORE_FILES: listed} if (listed := list(names)) else {}


def file_beside(directory: Path, name: str) -> Path | None:
    """Return the path of a file beside the shards of a directory, or None if it never had one.
    Raises InputError if the index names the file, but it is missing."""
    if (path := directory / name).is_file():
        return path
    index = directory / INDEX_NAME
    if index.is_file():
        with describing(index, "damaged index"):
            if name in read_json(index).get(_MORE_FILES, []):
                raise InputError("the file is missing", path, remedy="Run 'dvc repro' to make it again.")
    return None


class ShardDirectory:
    """A directory with ``shard-00000.parquet`` ... and ``_shards.json``.

    records: rows and SHA-256 of each shard, in order.
    description: the other entries of ``_shards.json`` (step, version, parameters, ...).
    """

    def __init__(self, path: str | Path) -> None:
        """Open ``path``. Raises InputError if the directory or its index is missing, or the index is damaged
        or has a newer format."""
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError("no such directory of shards", self.path, remedy="Run 'dvc repro' to make it.")
        path = self.path / INDEX_NAME
        index = read_json(path)
        with describing(path, "damaged index"):
            check_format(index["format"], INDEX_FORMAT, path)
            self.records = [
                ShardRecord(plain_name(s["file"]), int(s["rows"]), str(s["sha256"])) for s in index["shards"]
            ]
        self.description = {
            key: value for key, value in index.items() if key not in ("format", "rows", "shards")
        }

    def __len__(self) -> int:
        return len(self.records)

    def with_aligned(self) -> list[ShardDirectory]:
        """Return this directory and the subdirectories named in its index, which have more columns of the
        same rows.
        Raises InputError if one of them is missing."""
        with describing(self.path / INDEX_NAME, "damaged index"):
            names = [plain_name(name) for name in self.description.get(_MORE_COLUMNS, [])]
        return [self, *(ShardDirectory(self.path / name) for name in names)]

    @cached_property
    def paths(self) -> list[Path]:
        """Path of each shard, in order."""
        return [self.path / record.file for record in self.records]

    @cached_property
    def rows(self) -> list[int]:
        """Rows of each shard, in order."""
        return [record.rows for record in self.records]

    @property
    def total_rows(self) -> int:
        """Rows of all shards."""
        return sum(self.rows)

    @property
    def digest(self) -> str:
        """SHA-256 over the SHA-256 of all shards."""
        return hash_json([record.sha256 for record in self.records])

    @property
    def schema(self) -> pa.Schema:
        """Schema of the first shard; empty if there are no shards."""
        return read_schema(self.paths[0]) if self.records else pa.schema([])

    def read(self, index: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Read one shard, checking page checksums and its row count."""
        table = read_parquet(self.paths[index], columns)
        if table.num_rows != self.records[index].rows:
            raise IncompleteError(
                f"{self.paths[index]}: {table.num_rows} rows, its index says {self.records[index].rows}"
            )
        return table

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the shards one after the other."""
        for index in range(len(self)):
            yield self.read(index, columns)


class ShardView:
    """Several row-aligned directories as one: row k of shard n has the columns of row k of shard n in each.
    If two directories have the same column, the later one is used."""

    def __init__(self, *paths: str | Path) -> None:
        """Open the directories, and the subdirectories that their indexes name. Raises InputError if their
        shards have different numbers of rows, or if one was made from other shards of a step than are read
        here."""
        self.directories = [shards for path in paths for shards in ShardDirectory(path).with_aligned()]
        first = self.directories[0]
        for other in self.directories[1:]:
            if other.rows != first.rows:
                raise InputError(
                    f"its shards are not aligned with those of {first.path}: "
                    f"{len(other)} shards of {other.total_rows} rows, {len(first)} of {first.total_rows}",
                    other.path,
                    remedy="Run 'dvc repro' to make both from the same input.",
                )
        digests = self.digests
        for other in self.directories:
            for step, digest in dict(other.description.get("aligned_to") or {}).items():
                if digests.get(step, digest) != digest:
                    raise InputError(
                        f"made from other shards of '{step}' than those that are read with it",
                        other.path,
                        remedy="Run 'dvc repro' to make both from the same input.",
                    )
        self._columns = [directory.schema.names for directory in self.directories]

    def __len__(self) -> int:
        return len(self.directories[0])

    @property
    def rows(self) -> list[int]:
        """Rows of each shard, in order."""
        return self.directories[0].rows

    @property
    def total_rows(self) -> int:
        """Rows of all shards."""
        return self.directories[0].total_rows

    @property
    def digests(self) -> dict[str, str]:
        """Digest of each directory by the name of the step that made it; a directory that no step made has
        none."""
        return {str(d.description["step"]): d.digest for d in self.directories if "step" in d.description}

    @property
    def column_names(self) -> list[str]:
        """Columns of the view."""
        return list(dict.fromkeys(name for names in self._columns for name in names))

    def shard_paths(self, index: int) -> list[Path]:
        """Return the files of shard ``index``, one per directory."""
        return [directory.paths[index] for directory in self.directories]

    def read(self, index: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Read shard ``index`` with the named columns (all by default). Raises InputError if no directory has
        one of the columns."""
        return read_aligned(self.shard_paths(index), columns)

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the shards one after the other."""
        for index in range(len(self)):
            yield self.read(index, columns)


def read_aligned(paths: Sequence[Path], columns: Sequence[str] | None = None) -> pa.Table:
    """Read row-aligned Parquet files as one table with the named columns (all by default). If two files have
    the same column, the later one is used. Raises InputError if no file has one of the columns, and
    IncompleteError if the files have different numbers of rows."""
    holder: dict[str, Path] = {}
    for path in paths:
        holder.update(dict.fromkeys(read_schema(path).names, path))
    wanted = list(holder) if columns is None else list(columns)
    missing = [name for name in wanted if name not in holder]
    if missing:
        raise InputError(f"no column {', '.join(missing)}; it has {', '.join(holder)}", paths[0])
    tables = {
        path: read_parquet(path, names)
        for path in paths
        if (names := [name for name in wanted if holder[name] == path])
    }
    rows = {path: table.num_rows for path, table in tables.items()}
    if len(set(rows.values())) > 1:
        raise IncompleteError(
            f"not row-aligned: {', '.join(f'{path} has {count}' for path, count in rows.items())}"
        )
    return pa.table(
        [tables[holder[name]].column(name) for name in wanted],
        schema=pa.schema([tables[holder[name]].schema.field(name) for name in wanted]),
    )


class ShardWriter:
    """Writes a stream of tables as shards with equally many rows; the last may have fewer. Only the rows
    decide the shards, not how the stream was cut into tables."""

    def __init__(
        self,
        directory: Path,
        schema: pa.Schema,
        rows_per_shard: int = ROWS_PER_SHARD,
        stem: str = "shard",
        options: Mapping[str, Any] | None = None,
        pool: Executor | None = None,
    ) -> None:
        """Make the directory.

        schema: columns to write; others of the tables are left out. stem: beginning of the file names.
        options: named arguments of :func:`write_shard`.
        pool: threads that write the shards; :meth:`write` waits while more than two are being written.
        """
        if rows_per_shard < 1:
            raise ValueError("rows_per_shard must be at least 1")
        self.directory = directory
        self.schema = schema
        self.rows_per_shard = rows_per_shard
        self.stem = stem
        self.options = dict(options or {})
        self.pool = pool
        self.records: list[ShardRecord] = []
        self._writing: deque[Future[ShardRecord]] = deque()
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        make_directory(directory)

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Add rows; full shards are written immediately."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        table = table.select(self.schema.names).cast(self.schema)
        self._pending.append(table)
        self._pending_rows += table.num_rows
        while self._pending_rows >= self.rows_per_shard:
            self._flush(self.rows_per_shard)

    def _flush(self, rows: int) -> None:
        merged = pa.concat_tables(self._pending)
        shard = merged.slice(0, rows).combine_chunks()
        rest = merged.slice(rows)
        self._pending = [rest] if rest.num_rows else []
        self._pending_rows = rest.num_rows
        path = self.directory / shard_name(len(self.records) + len(self._writing), self.stem)
        if self.pool is None:
            self.records.append(write_shard(shard, path, **self.options))
            return
        self._writing.append(self.pool.submit(write_shard, shard, path, **self.options))
        self._wait(2)

    def _wait(self, most: int) -> None:
        """Wait until at most this many shards are being written."""
        while len(self._writing) > most:
            self.records.append(self._writing.popleft().result())

    def close(self, description: dict[str, Any] | None = None) -> list[ShardRecord]:
        """Write the remaining rows and, if a description is given, ``_shards.json``."""
        if self._pending_rows:
            self._flush(self._pending_rows)
        self._wait(0)
        if description is not None:
            write_index(self.directory, self.records, description)
        return self.records
