"""Scores the pairs of one file, TSV or Parquet, into one Parquet file, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from paraforge.bitext.readers.tsv import read_tsv
from paraforge.errors import InputError, one_line
from paraforge.files import atomic_path
from paraforge.interrupts import check_interrupt
from paraforge.progress import progress
from paraforge.scoring.corpus_counts import MOST_ROWS, count_shard, put_together
from paraforge.scoring.pairs import TEXT_COLUMNS
from paraforge.scoring.score import build_scorers, score_table
from paraforge.scoring.scorer import Scorer
from paraforge.shards.pool import in_processes
from paraforge.shards.schema import COLUMNS
from paraforge.shards.store import parquet_writer
from paraforge.text.lines import Reading
from paraforge.text.paths import require_regular

BATCH_ROWS: Final = 50_000
# With no more tables than this, starting processes takes longer than scoring.
_TABLES_IN_PROCESS: Final = 3
_PARQUET_MAGIC: Final = b"PAR1"

_scorers: list[Scorer] = []  # of this process


def score_file(
    input_path: Path,
    output: Path,
    scorer_arguments: Mapping[str, Any],
    columns: Mapping[str, int | str],
    header: bool = False,
    workers: int = 1,
) -> int:
    """Score every pair of a file.

    input_path: Parquet, or TSV (plain, gz, bz2, xz, zst; divided by tabs alone, no quoting).
    output: Parquet file to write; for a TSV `line`, `reference`, `translation` and the scores, for a Parquet
        file all its columns and the scores, which replace columns of the same name.
    scorer_arguments: of :func:`~paraforge.scoring.score.build_scorers`.
    columns: where `reference` and `translation` stand: names, or for a TSV numbers from 0.
    header: whether a TSV's first line names its columns. workers: processes.

    Returns rows written. The result does not depend on the number of workers.

    Raises:
        InputError: the input cannot be read, a column is missing, a line has too few columns.
        Interrupted: SIGTERM or Ctrl-C; nothing is written.
    """
    check_input(input_path)

    def read() -> Iterator[Any]:
        if is_parquet(input_path):
            return _parquet_tables(input_path, columns)
        return _full_tables(_tsv_tables(input_path, columns, header))

    counts = put_together(map(count_shard, islice(read(), MOST_ROWS // BATCH_ROWS)))
    scorer_arguments = {**scorer_arguments, "counts": counts}
    tables = read()
    begun = list(islice(tables, _TABLES_IN_PROCESS + 1))
    if not begun:
        raise InputError("no pairs in the input", input_path)
    pieces = chain(begun, tables)
    if workers == 1 or len(begun) <= _TABLES_IN_PROCESS:
        _start(scorer_arguments)
        scored: Iterator[Any] = map(_scored, pieces)
    else:
        scored = in_processes(_scored, pieces, _start, (scorer_arguments,), workers)
    rows = 0
    with ExitStack() as stack:
        bar = stack.enter_context(progress(total=None, unit="pairs", description="score"))
        temporary = stack.enter_context(atomic_path(output))
        writer = None
        for table in scored:
            # The schema is known from the first table.
            writer = writer or stack.enter_context(parquet_writer(temporary, table.schema))
            writer.write_table(table)
            rows += table.num_rows
            bar.update(table.num_rows)
            check_interrupt()
    return rows


def check_input(path: Path) -> None:
    """Refuse a path that is no regular file. Raises InputError: as said."""
    require_regular(path)


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet files do."""
    with path.open("rb") as file:
        return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def _tsv_tables(path: Path, columns: Mapping[str, int | str], header: bool) -> Iterator[Any]:
    try:
        for block in read_tsv(path, columns, Reading(), header=header):
            arrays = {"line": pa.array(block.lines), **{name: block.texts[name] for name in TEXT_COLUMNS}}
            if block.codes.any():
                raise InputError("a line is too long", path, int(block.lines[block.codes.argmax()]))
            yield pa.table(
                [arrays[name] for name in arrays], schema=pa.schema([COLUMNS[name] for name in arrays])
            )
    except InputError as error:
        # The reader's remedies are about a bitext that is ingested.
        raise InputError(error.message, error.path, error.line, "Mend the file.") from error


def _full_tables(tables: Iterator[Any]) -> Iterator[Any]:
    """The same rows in tables of BATCH_ROWS: what is written must not depend on how the file was read."""
    pending: list[Any] = []
    rows = 0
    for table in tables:
        pending.append(table)
        rows += table.num_rows
        while rows >= BATCH_ROWS:
            merged = pa.concat_tables(pending)
            yield merged.slice(0, BATCH_ROWS)
            pending = [merged.slice(BATCH_ROWS)]
            rows -= BATCH_ROWS
    if rows:
        yield pa.concat_tables(pending)


def _parquet_tables(path: Path, columns: Mapping[str, int | str]) -> Iterator[Any]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            for name, column in columns.items():
                if column not in names:
                    raise InputError(f"no column {column!r} for {name}; it has {', '.join(names)}", path)
                kind = file.schema_arrow.field(column).type
                if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                    raise InputError(f"column {column!r} for {name} is {kind}, not text", path)
            if not file.metadata.num_rows:
                raise InputError("the file has no rows", path)
            renamed = {str(column): name for name, column in columns.items()}
            present = [renamed.get(name, name) for name in names]
            twice = sorted({name for name in present if present.count(name) > 1})
            if twice or len(renamed) < len(columns):
                problem = f"more than one column would be {' and '.join(twice or columns)}"
                raise InputError(problem, path, remedy="Rename or drop the others.")
            rows = 0
            for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                yield pa.Table.from_batches([batch]).rename_columns(present)
                rows += batch.num_rows
            if rows != file.metadata.num_rows:
                problem = f"{rows:,} rows, its footer says {file.metadata.num_rows:,}"
                raise InputError(f"not a whole Parquet file: {problem}", path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"not a whole Parquet file: {one_line(error)}", path) from error


def _start(arguments: Mapping[str, Any]) -> None:
    """Load the scorers of this process."""
    global _scorers
    _scorers = build_scorers(**arguments)


def _scored(table: Any) -> Any:
    """A table with its scores, which replace columns of the same name."""
    scores = score_table(table, _scorers)
    kept = table.drop_columns([name for name in table.column_names if name in scores.column_names])
    for field, column in zip(scores.schema, scores.columns, strict=True):
        kept = kept.append_column(field, column)
    return kept
