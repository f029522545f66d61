"""Scores the pairs of one TSV, CSV or Parquet file into one Parquet file, and applies bounds, as the stages
do."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraforge.base.errors import InputError
from paraforge.base.files import atomic_path, scratch_directory
from paraforge.base.logs import counted
from paraforge.base.progress import progress
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.schema import FATE_COLUMNS, TEXT_COLUMNS, holds_text, tables_of
from paraforge.base.shards.store import ShardView, ShardWriter, parquet_writer
from paraforge.base.text.lines import Reading
from paraforge.base.text.paths import require_regular
from paraforge.base.text.repair import REPAIRS
from paraforge.corpus.columns import COLUMNS, COMPUTED, schema_of
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import OpenModel, score
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs
from paraforge.corpus.selection.fate import Counts
from paraforge.corpus.selection.filters.bounds import BoundsParameters
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from paraforge.corpus.selection.thresholds import settle
from paraforge.intake.bitext.languages import NO_WORD, is_header
from paraforge.intake.bitext.readers.parquet import parquet_tables
from paraforge.intake.bitext.readers.tsv import read_separated, separator_of
from paraforge.intake.bitext.source import REJECT_MALFORMED

logger = logging.getLogger(__name__)

BATCH_ROWS: Final = 50_000
_ROWS_LOOKED_AT: Final = 200
_PARQUET_MAGIC: Final = b"PAR1"
# Optional columns that are read if present.
_OTHER_TEXTS: Final = ("source", "source_text", *FATE_COLUMNS)
# Scores of a file that bounds can read; all others are computed.
_GIVEN_SCORES: Final = ("translation_score", "given_score")


@dataclass(frozen=True)
class ScoredFile:
    """The result: the number of rows, the scored mismatched pairs made from them, the bounds as numbers, and
    counts of the rows' fates (zero without bounds)."""

    rows: int
    wrong_pairs: pa.Table
    bounds: SelectParameters
    counts: Counts


def score_file(
    input_path: Path,
    output: Path,
    parameters: ScoreParameters,
    vectors: Path,
    columns: Mapping[str, int | str],
    header: bool,
    resources: Resources,
    open_model: OpenModel | None,
    bounds: Sequence[BoundsParameters],
) -> ScoredFile:
    """Score every pair of a file, and mismatched pairs made from them. Pairs outside the bounds get a reason
    in the column ``rejected``; reasons that the file has stay.

    input_path: Parquet; or TSV (plain, gz, bz2, xz, zst; no quoting); or CSV if the name says so (fields can
        be quoted).
    output: Parquet file to write. For a TSV it has `line`, `reference`, `translation` and the scores; for a
        Parquet file all its columns and the scores, which replace columns of the same name.
    parameters, vectors, open_model: see :func:`~paraforge.corpus.scoring.score.score`.
    columns: the columns `reference` and `translation`: names, or for a TSV numbers from 0.
    header: whether a TSV's first line names its columns. resources: workers and devices.
    bounds: filters, in order; a share is settled on the mismatched pairs.

    Raises:
        InputError: the input cannot be read, a column is missing, a line has too few columns, or a bound is
            on a column that does not exist.
        ConfigurationError: a minimum cannot be found because there are no mismatched pairs.
    """
    require_regular(input_path)
    if {".json", ".jsonl"} & {*map(str.lower, input_path.suffixes[-2:])}:
        remedy = "Turn it into Parquet, for example with DuckDB: COPY (FROM 'FILE') TO 'pairs.parquet'."
        raise InputError("JSON is not read here", input_path, remedy=remedy)

    repairs: Counter[str] = Counter()

    def read() -> Iterator[pa.Table]:
        repairs.clear()
        tables = _parquet_tables(input_path, columns)
        if not is_parquet(input_path):
            tables = _tsv_tables(input_path, columns, header)
        return map(partial(_repair, repairs), tables_of(tables, BATCH_ROWS))

    with scratch_directory(output) as scratch:
        pairs, scored = scratch / "pairs", scratch / "scored"
        _write_pairs(read(), pairs, input_path)
        present = ShardView(pairs)
        _check_bounds(bounds, present.column_names, input_path)
        _say_oddities(present.read(0, TEXT_COLUMNS).slice(0, _ROWS_LOOKED_AT), columns, header, input_path)
        own = resources.model_copy(update={"work": scratch / "work"})
        report = score(parameters, pairs, vectors, scored, own, open_model)
        wrong = find_wrong_pairs([scored])
        assert wrong is not None
        requested = SelectParameters(required=[], deciles=[], filters=list(bounds))
        settled = settle(requested, wrong, "--wrong-pairs")
        parts, counts = [scored], Counts()
        if bounds:
            parts.append(scratch / "selected")
            counts = select(settled, [pairs, scored], parts[-1], own).counts
        _write_scored(read(), ShardView(*parts), output)
    for what, count in repairs.items():
        logger.warning("%s: %s had %s, which were repaired", input_path, counted(count, "text"), what)
    return ScoredFile(report.rows, wrong, settled, counts)


def _check_bounds(bounds: Sequence[BoundsParameters], present: Sequence[str], path: Path) -> None:
    """Raise InputError, before anything is scored, if a bound is on a column that will not exist."""
    for bound in bounds:
        if bound.score not in COMPUTED and bound.score not in present:
            raise InputError(f"a bound uses {bound.score}, which is not a column of floats in the file", path)


def _write_pairs(tables: Iterator[pa.Table], directory: Path, path: Path) -> None:
    """Write the texts of a file as shards, with row numbers as lines."""
    writer, rows = None, 0
    directory.mkdir()
    for table in tables:
        present = [name for name in (*_OTHER_TEXTS, *TEXT_COLUMNS) if name in table.column_names]
        columns = {name: table[name] for name in present}
        columns |= {
            name: table[name]
            for name in _GIVEN_SCORES
            if name in table.column_names and pa.types.is_floating(table[name].type)
        }
        source = columns.get("source", pa.nulls(table.num_rows, pa.string()))
        columns["source"] = pc.fill_null(source.cast(pa.string()), "")
        columns["line"] = pa.array(np.arange(rows, rows + table.num_rows) + 1)
        schema = schema_of(columns)
        writer = writer or ShardWriter(directory, schema, BATCH_ROWS)
        arrays = [columns[name].cast(schema.field(name).type) for name in schema.names]
        writer.write(pa.table(arrays, schema=schema))
        rows += table.num_rows
    if writer is None:
        raise InputError("the input has no pairs", path)
    writer.close({"step": "score-file"})


def _write_scored(tables: Iterator[pa.Table], scored: ShardView, output: Path) -> None:
    """Write the tables of the input with their scores as one Parquet file."""
    names = schema_of(scored.column_names).names
    with atomic_path(output) as temporary, ExitStack() as stack:
        bar = stack.enter_context(progress(total=scored.total_rows, unit="pairs", description="write"))
        writer = None
        for table, scores in zip(tables, scored.tables(names), strict=True):
            written = _with_scores(table, scores)
            writer = writer or stack.enter_context(parquet_writer(temporary, written.schema))
            writer.write_table(written)
            bar.update(table.num_rows)


def _with_scores(table: pa.Table, scores: pa.Table) -> pa.Table:
    """Add scores and fate to a table, replacing columns of the same name."""
    kept = table.drop_columns([name for name in table.column_names if name in scores.column_names])
    for field, column in zip(scores.schema, scores.columns, strict=True):
        kept = kept.append_column(field, column)
    return kept


def _repair(repairs: Counter[str], table: pa.Table) -> pa.Table:
    """Repair the table's texts as ingest does, and count the repairs."""
    for name in TEXT_COLUMNS:
        place, texts = table.column_names.index(name), table[name].combine_chunks()
        plain = pc.fill_null(texts, "")
        for what, repair in REPAIRS.items():
            plain, changed = repair(plain)
            if changed.any():
                repairs[what] += int(changed.sum())
        column = pc.if_else(texts.is_valid(), plain, pa.scalar(None, texts.type))
        table = table.set_column(place, table.schema.field(place), column)
    return table


def _say_oddities(rows: pa.Table, columns: Mapping[str, int | str], header: bool, path: Path) -> None:
    """Warn if a column has numbers or keys instead of texts, or if the first row looks like a header."""
    texts = {name: [text or "" for text in rows[name].to_pylist()] for name in TEXT_COLUMNS}
    for name, ones in texts.items():
        if sum(NO_WORD.fullmatch(text.strip()) is not None for text in ones) > len(ones) / 2:
            words = "%s: column %s has numbers or keys. Use other columns with --reference and --translation"
            logger.warning(words, path, columns[name])
    if not is_parquet(path) and not header and is_header([ones[0] for ones in texts.values()]):
        logger.warning("%s: the first row looks like a header. Use --header", path)


def _separator(path: Path) -> str | None:
    """Return the separator of a CSV file; None for a TSV."""
    return separator_of(path) if ".csv" in map(str.lower, path.suffixes[-2:]) else None


def is_parquet(path: Path) -> bool:
    """Return whether a file has Parquet's magic bytes."""
    with path.open("rb") as file:
        return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def _tsv_tables(path: Path, columns: Mapping[str, int | str], header: bool) -> Iterator[Any]:
    try:
        separator = _separator(path)
        for block in read_separated(path, columns, Reading(), header=header, separator=separator):
            arrays = {"line": pa.array(block.lines), **{name: block.texts[name] for name in TEXT_COLUMNS}}
            if block.codes.any():
                raise InputError("a line is too long", path, int(block.lines[block.codes.argmax()]))
            yield pa.table(
                [arrays[name] for name in arrays], schema=pa.schema([COLUMNS[name] for name in arrays])
            )
    except InputError as error:
        # Ingest's remedy for such a row does not apply here.
        remedy = None if error.remedy == REJECT_MALFORMED else error.remedy
        raise InputError(error.message, error.path, error.line, remedy or "Correct the file.") from error


def _parquet_tables(path: Path, columns: Mapping[str, int | str]) -> Iterator[Any]:
    for table in parquet_tables(path, BATCH_ROWS):
        names = table.column_names
        for name, column in columns.items():
            if column not in names:
                raise InputError(f"no column {column!r} for {name}; it has {', '.join(names)}", path)
            if not holds_text(kind := table.schema.field(column).type):
                raise InputError(f"column {column!r} for {name} is {kind}, not text", path)
        for field in table.schema:
            is_text = holds_text(field.type) or pa.types.is_null(field.type)
            if field.name in _OTHER_TEXTS and not is_text:
                problem = f"column {field.name!r} is {field.type}, not text"
                raise InputError(problem, path, remedy="Rename it: a column of that name is read.")
        renamed = {str(column): name for name, column in columns.items()}
        present = [renamed.get(name, name) for name in names]
        twice = sorted({name for name in present if present.count(name) > 1})
        if twice or len(renamed) < len(columns):
            problem = f"more than one column would be {' and '.join(twice or columns)}"
            raise InputError(problem, path, remedy="Rename or drop the others.")
        yield _with_plain_texts(table.rename_columns(present))


def _with_plain_texts(table: Any) -> Any:
    """Convert the columns that are read to plain strings if they have another layout or only nulls."""
    for place, field in enumerate(table.schema):
        if field.name in (*TEXT_COLUMNS, *_OTHER_TEXTS) and not pa.types.is_large_string(field.type):
            table = table.set_column(place, field.with_type(pa.string()), table[place].cast(pa.string()))
    return table
